"""From a judged run to packages that a real machine installs, with the card that says where they are from."""
