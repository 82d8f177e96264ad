"""Import paths of OpenStack Swift that scripts of deployment projects use; nothing of ours imports them."""
