"""The documentation held to the program: commands, help texts, names, columns and links."""
