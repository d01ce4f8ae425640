"""The base of all rooms: errors, texts, files, programs, the terminal, the terms of measuring, and CPUs."""
