"""A replacement of keystonemiddleware's filter: its tokens contain their identity.

A token is ``<user>:<project>:<role>[,<role>...]``, of the domain ``default``.
"""

_SAID = ("IDENTITY_STATUS", "USER_ID", "USER_NAME", "PROJECT_ID", "PROJECT_NAME", "ROLES", "USER_DOMAIN_ID")


def filter_factory(_global_conf, **_conf):
    """The PasteDeploy factory."""

    def make(app):
        def authtoken(environ, start_response):
            for name in (*_SAID, "PROJECT_DOMAIN_ID", "SERVICE_IDENTITY_STATUS", "SERVICE_ROLES"):
                environ.pop(f"HTTP_X_{name}", None)
            user, _, rest = environ.get("HTTP_X_AUTH_TOKEN", "").partition(":")
            project, _, roles = rest.partition(":")
            status = "Confirmed" if roles else "Invalid"
            values = (status, user, f"{user}-name", project, f"{project}-name", roles, "default")
            environ.update({f"HTTP_X_{name}": value for name, value in zip(_SAID, values, strict=True)})
            environ["HTTP_X_PROJECT_DOMAIN_ID"] = "default"
            environ["keystone.token_info"] = {"token": {}}
            return app(environ, start_response)

        return authtoken

    return make
