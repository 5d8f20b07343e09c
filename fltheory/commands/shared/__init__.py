"""What commands share: options, places of files, the console, resumption, how a command ends."""
