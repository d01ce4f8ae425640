"""What distributions say of themselves in /etc/os-release: what kdyno looks at, and a little more."""

DEBIAN = """\
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION_CODENAME=bookworm
ID=debian
"""
UBUNTU = """\
PRETTY_NAME="Ubuntu 24.04.4 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.4 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
"""
JAMMY = UBUNTU.replace("24.04.4", "22.04.5").replace("24.04", "22.04").replace("noble", "jammy")
MINT = """\
NAME="Linux Mint"
VERSION="22.1 (Xia)"
ID=linuxmint
ID_LIKE="ubuntu debian"
VERSION_ID="22.1"
VERSION_CODENAME=xia
UBUNTU_CODENAME=noble
"""
LMDE = """\
NAME="LMDE"
ID=linuxmint
ID_LIKE=debian
VERSION_CODENAME=faye
DEBIAN_CODENAME=bookworm
"""
FEDORA = """\
NAME="Fedora Linux"
VERSION="42 (Server Edition)"
ID=fedora
VERSION_ID=42
VARIANT='Server Edition'
"""
