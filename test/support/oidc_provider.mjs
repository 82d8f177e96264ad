// A certified OpenID provider with its development pages: any name logs in with any password.
// node oidc_provider.mjs PORT, in a folder with oidc-provider; standard input is its configuration.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));
const port = Number(process.argv[2]);
const { groups, ...configuration } = JSON.parse(readFileSync(0, 'utf8'));
const provider = new Provider(`http://127.0.0.1:${port}`, {
  ...configuration,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['of a test'] },
  pkce: { required: () => true },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: groups[id] ?? [] }),
  }),
});
provider.listen(port, '127.0.0.1', () => console.log('ready'));
