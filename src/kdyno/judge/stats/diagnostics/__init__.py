"""Tables and plots that let a reader doubt a verdict; nothing here decides one."""
