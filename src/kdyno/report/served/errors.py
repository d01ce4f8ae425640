"""The errors of the server."""

from __future__ import annotations

from kdyno.base.errors import InfrastructureError, UserError


class NotAnAddress(UserError):
    message = "{text} is not an address to listen on"
    hint = "give HOST:PORT, as in 127.0.0.1:8420"


class NoName(UserError):
    message = "on {address} the server would answer nobody: it knows no name by which browsers reach this host"
    hint = "pass the name, or several: --name perf.example.org"


class AddressTaken(InfrastructureError):
    message = "the server can't listen on {address}: {why}"
    hint = "name another one: kdyno serve --listen 127.0.0.1:8421"


class TokensInClear(UserError):
    message = "tokens would cross the network in clear: {address} is not loopback, and there is no certificate"
    hint = "pass --certificate FILE --key FILE; or listen on loopback, behind a proxy with TLS; or leave out --tokens"


class CertificateIncomplete(UserError):
    message = "a certificate needs its key, and a key its certificate"
    hint = "pass both: --certificate FILE --key FILE"


class CertificateUnfit(UserError):
    message = "the certificate {certificate} and the key {key} can't be used: {why}"
    hint = "both are files in PEM, the key without a password, and belong together"


class TokensUnfit(UserError):
    message = "{path} is not a file of tokens: {why}"
    hint = "a line for each person, NAME TOKEN, readable by you alone (chmod 600); `openssl rand -hex 16` makes a token"


class PageMissing(UserError):
    message = "there is no page {path}"
    hint = "go to the start"


class NotSignedIn(UserError):
    message = "only who has signed in may write"
    hint = "sign in with your token"


class WrongToken(UserError):
    message = "nobody has this token"
    hint = "ask who runs this server for one"


class FormUnfit(UserError):
    message = "the form can't be read: {why}"
    hint = "go back, and try again"
