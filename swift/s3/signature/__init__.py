"""Who signed a request, and what it promised of its body (spec: middleware.md §22.1)."""

from swift.s3.signature.claim import Claim, anonymous
from swift.s3.signature.identify import identify, is_signed

__all__ = ["Claim", "anonymous", "identify", "is_signed"]
