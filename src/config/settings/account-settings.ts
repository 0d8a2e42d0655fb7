/** Settings of the kinds that many accounts share: who may call, what it costs, how deployments are reached. */
import type { SettingName } from '../env.ts'
import { readBlock } from '../readers/read-block.ts'
import { readList, readWordOr } from '../readers/read-choice.ts'
import { DAY, readDurationMs, SECOND, YEAR } from '../readers/read-quantity.ts'
import {
  readAlgorithm,
  readClaim,
  readDomain,
  readKeySource,
  readLabel,
  readPoolHook,
  readText,
} from '../readers/read-remote.ts'
import { readSigningKeys, readToken, readWebhookSecret } from '../secrets.ts'
import type { Setting } from './setting.ts'

export const ACCOUNT_SETTINGS = {
  signingKeys: {
    group: 'Assets',
    argument: null,
    fallback: 'none',
    read: readWordOr('none', [], readSigningKeys),
    help: 'Secrets that sign content addresses, newest first, comma separated: each at least 16 bytes in hex or base64, or `name:secret`. The first signs, all verify. `none`: one is made and kept in the data folder.',
    isSecret: true,
  },
  urlLifetime: {
    group: 'Assets',
    argument: '<duration>',
    fallback: '24h',
    read: readDurationMs({ min: 60 * SECOND, max: 7 * DAY }),
    help: 'How long a signed content address is valid at most; an address in an answer has at least three quarters of this time left.',
  },
  adminToken: {
    group: 'Accounts',
    argument: '<token>',
    fallback: 'none',
    read: readWordOr('none', null, readToken),
    help: 'The bearer token of the admin API under `/admin/v1`. `none`: on the local kind whoever may use the service may use the admin API, with `token` where one is set; on the others there is no admin API. Prefer the variable.',
    isSecret: true,
  },
  tiers: {
    group: 'Accounts',
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'A JSON file with the tiers, or, in the config file, the tiers themselves; see docs/accounts.md. `none`: `free`, `standard` and `pro`, with 1, 3 and 5 jobs at once.',
    isBlock: true,
  },
  prices: {
    group: 'Accounts',
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'A JSON file with the prices, or, in the config file, the prices themselves; see docs/accounts.md. `none`: everything is free.',
    isBlock: true,
  },
  jwtKeys: {
    group: 'Accounts',
    argument: '<url or file>',
    fallback: 'none',
    read: readWordOr('none', null, readKeySource),
    help: 'Where the keys are that sign JWTs: an https address of a JWKS, or a file with a JWKS or a public key in PEM. `none`: API keys only.',
  },
  jwtIssuer: {
    group: 'Accounts',
    argument: '<text>',
    fallback: 'none',
    read: readWordOr('none', null, readText),
    help: 'The `iss` that a JWT must have.',
  },
  jwtAudience: {
    group: 'Accounts',
    argument: '<text>',
    fallback: 'none',
    read: readWordOr('none', null, readText),
    help: 'The `aud` that a JWT must have.',
  },
  jwtAlgorithms: {
    group: 'Accounts',
    argument: '<names>',
    fallback: 'RS256,PS256,ES256,EdDSA',
    read: readList(readAlgorithm),
    help: 'The signature algorithms that a JWT may use, comma separated; asymmetric ones only.',
  },
  jwtAccountClaim: {
    group: 'Accounts',
    argument: '<name>',
    fallback: 'sub',
    read: readClaim,
    help: 'The claim of a JWT that names the account.',
  },
  jwtScopesClaim: {
    group: 'Accounts',
    argument: '<name>',
    fallback: 'scope',
    read: readClaim,
    help: 'The claim of a JWT with its scopes, as a list or separated by blanks. Without it the token may do what its account may.',
  },
  jwtClockSkew: {
    group: 'Accounts',
    argument: '<duration>',
    fallback: '30s',
    read: readDurationMs({ min: 0, max: 600 * SECOND }),
    help: 'How far the clock of the signer of a JWT may be off.',
  },
  deploymentsDomain: {
    group: 'Deployments',
    argument: '<domain>',
    fallback: 'none',
    read: readWordOr('none', null, readDomain),
    help: 'Deployments answer at `{deployment}.run.<domain>`. `none`: only under `/deployment/{deployment}`.',
  },
  stagingLabel: {
    group: 'Deployments',
    argument: '<label>',
    fallback: 'stg',
    read: readLabel,
    help: 'The label of a staging address: `{deployment}.run.<label>.<domain>` and `{deployment}.<label>.run.<domain>` are served as well.',
  },
  poolHook: {
    group: 'Deployments',
    argument: '<url or command>',
    fallback: 'none',
    read: readWordOr('none', null, readPoolHook),
    help: 'Called when jobs wait and a pool has no worker, and when a pool has been idle: an http(s) address that gets a POST, or an absolute path of a program that gets the same JSON on its input. See docs/deployments.md.',
  },
  poolHookSecret: {
    group: 'Deployments',
    argument: null,
    fallback: 'none',
    read: readWordOr('none', null, readWebhookSecret),
    help: 'Signs what is sent to an address of `poolHook`, as `whsec_` and 24 to 64 bytes in base64 (docs/webhooks.md). `none`: the service signs with a key of its own, which receivers cannot verify.',
    isSecret: true,
  },
  poolIdle: {
    group: 'Deployments',
    argument: '<duration>',
    fallback: '5m',
    read: readDurationMs({ min: SECOND, max: YEAR }),
    help: 'After how long without a job a deployment goes to sleep; a job wakes it.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
