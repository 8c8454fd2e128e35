"""Runs a C++ program that was built without a compiler of the machine."""

import subprocess
import sys

commands = ([sys.argv[1]], [sys.argv[1], "a bc"])
said = [subprocess.run(command, capture_output=True, text=True).stdout for command in commands]
if said != ["error: no text\n", "2 words, 3 letters\n"]:
    sys.exit(f"the program said {said}")
