"""A mail server that is not ours: aiosmtpd, with STARTTLS and a login, read back by Python's own
parser of mail. Usage: server.py PORT CERTIFICATE KEY FOLDER. Each mail becomes a file of JSON in
the folder; it says `ready` and runs until its input ends."""

import base64
import email
import email.policy
import json
import os
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Keeper:
    """Writes down what was taken, as others would read it."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = [part for part in mail.walk() if not part.is_multipart()]
        body = mail.get_body(preferencelist=("plain",))
        kept = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None,
            "login": session.auth_data.login.decode(),
            "headers": {name.lower(): str(value) for name, value in mail.items()},
            "defects": [repr(defect) for part in mail.walk() for defect in part.defects],
            "text": body.get_content() if body is not None else None,
            "attachments": [
                {
                    "name": part.get_filename(),
                    "type": part.get_content_type(),
                    "base64": base64.b64encode(part.get_payload(decode=True)).decode(),
                }
                for part in parts
                if part.get_content_disposition() == "attachment"
            ],
            "longest_line": max(len(line) for line in envelope.content.split(b"\r\n")),
            "ascii": envelope.content.isascii(),
            "bare": envelope.content.replace(b"\r\n", b"").count(b"\n")
            + envelope.content.replace(b"\r\n", b"").count(b"\r"),
        }
        self.count += 1
        name = os.path.join(self.folder, f"{self.count:04}.json")
        with open(name + ".part", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.rename(name + ".part", name)
        return "250 kept"


def admit(server, session, envelope, mechanism, data):
    """One user has one password; no other is let in."""
    known = getattr(data, "login", None) == b"lab" and getattr(data, "password", None) == b"s3cret"
    return AuthResult(success=known, handled=False, auth_data=data)


def main():
    port, certificate, key, folder = sys.argv[1:]
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    server = Controller(
        Keeper(folder),
        hostname="127.0.0.1",
        port=int(port),
        ready_timeout=60,
        data_size_limit=64 << 20,
        tls_context=tls,
        require_starttls=True,
        auth_required=True,
        auth_require_tls=True,
        authenticator=admit,
    )
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


main()
