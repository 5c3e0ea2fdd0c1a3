#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# keep_output.sh <folder> <command>...
# Runs the command; what it prints goes to a file of its own in the folder. The launcher is not asked to forward it: what
# a process printed just before it aborted is lost on that way now and then.

folder=$1
shift
exec "$@" >"$folder/$$" 2>&1
