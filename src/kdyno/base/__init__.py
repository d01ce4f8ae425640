"""What everything stands on: errors, texts, files, programs, the terminal, the words of measuring, and CPUs."""
