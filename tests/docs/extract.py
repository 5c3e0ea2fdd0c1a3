#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the one code block of a language that a Markdown file has: extract.py FILE LANGUAGE OUT."""
import re
import sys

source, language, out = sys.argv[1:]
with open(source, encoding="utf-8") as f:
    blocks = re.findall(rf"(?<!-->\n)^```{re.escape(language)}\n(.*?)^```$", f.read(), re.MULTILINE | re.DOTALL)
if len(blocks) != 1:
    sys.exit(f"{source} has {len(blocks)} blocks of {language}, not one")
with open(out, "w", encoding="utf-8") as f:
    f.write(blocks[0])
