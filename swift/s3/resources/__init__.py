"""What answers each operation: a file for each group of them."""

from __future__ import annotations

from swift.s3.call import Handler
from swift.s3.resources import (
    acl,
    attributes,
    bucket,
    completion,
    copies,
    cors,
    deletes,
    encryption,
    forms,
    inventory,
    lifecycle,
    listing,
    multipart,
    notifications,
    objectlocks,
    objects,
    ownership,
    payment,
    policies,
    service,
    settings,
    tagging,
    websites,
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
    # who may do what, and from where
    **policies.HANDLERS,
    **ownership.HANDLERS,
    **cors.HANDLERS,
    **forms.HANDLERS,
    **websites.HANDLERS,
    **payment.HANDLERS,
    **encryption.HANDLERS,
    **lifecycle.HANDLERS,
    **inventory.HANDLERS,
    **objectlocks.HANDLERS,
    **notifications.HANDLERS,
}
