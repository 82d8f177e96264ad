"""What answers each operation: a file for each group of them."""

from __future__ import annotations

from swift.middleware.s3api.call import Handler
from swift.middleware.s3api.resources import (
    acl,
    attributes,
    bucket,
    completion,
    copies,
    deletes,
    encryption,
    lifecycle,
    listing,
    locks,
    multipart,
    notifications,
    objects,
    service,
    settings,
    tagging,
)

#: Name of an operation in ``router.OPERATIONS`` → what answers it. What is not here is NotImplemented.
HANDLERS: dict[str, Handler] = {
    **service.HANDLERS,
    **bucket.HANDLERS,
    **listing.HANDLERS,
    **objects.HANDLERS,
    **copies.HANDLERS,
    **deletes.HANDLERS,
    **multipart.HANDLERS,
    **completion.HANDLERS,
    **acl.HANDLERS,
    **attributes.HANDLERS,
    **settings.HANDLERS,
    **tagging.HANDLERS,
    **encryption.HANDLERS,
    **lifecycle.HANDLERS,
    **locks.HANDLERS,
    **notifications.HANDLERS,
}
