"""Code that commands share: options, places of files, the console, resumption, exit status."""
