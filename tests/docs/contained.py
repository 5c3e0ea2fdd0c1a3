#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether a source contains the one code block of a language that a Markdown file has: contained.py FILE LANGUAGE SOURCE."""
import re
import sys

page, language, source = sys.argv[1:]
with open(page, encoding="utf-8") as f:
    blocks = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", f.read(), re.MULTILINE | re.DOTALL)
with open(source, encoding="utf-8") as f:
    if len(blocks) != 1 or blocks[0] not in f.read():
        sys.exit(f"{source} does not contain the block of {language} of {page}")
