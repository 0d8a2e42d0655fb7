/** Settings of the kinds that many accounts share: who may call, what it costs, how deployments are reached, who is told. */
import path from 'node:path'
import { readBlock, readList, readSwitch, readWordOr } from '../readers/read-choice.ts'
import { readToken, readWebhookSecret } from '../secrets.ts'
import type { SettingTable } from './setting.ts'

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

function readDomain(text: string): string {
  const domain = text.toLowerCase()
  const isDomain = domain.length <= 180 && domain.split('.').every((label) => LABEL.test(label))
  if (isDomain) return domain
  throw new Error('is not a domain; give for example example.com, without "run." and without a port')
}

type PoolHook = { readonly kind: 'webhook'; readonly url: string } | { readonly kind: 'command'; readonly path: string }

function readPoolHook(text: string): PoolHook {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: 'webhook', url: text }
  if (path.isAbsolute(text) && !text.includes('\0')) return { kind: 'command', path: text }
  throw new Error('is neither an http(s) address nor the absolute path of a program; give one of them')
}

export const ACCOUNT_SETTINGS = {
  adminToken: {
    argument: '<token>',
    fallback: 'none',
    read: readWordOr('none', null, readToken),
    help: 'The bearer token of the admin API under `/admin/v1`. `none`: on the local kind whoever may use the service may use the admin API, with `token` where one is set; on the others there is no admin API. Prefer the variable.',
    who: 'Operators who change accounts, keys and deployments while the service runs.',
    isSecret: true,
  },
  tiers: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'A JSON file with the tiers, or, in the config file, the tiers themselves; see docs/accounts.md. `none`: `free`, `standard` and `pro`, with 1, 3 and 5 jobs at once.',
    who: 'Operators who limit accounts differently.',
    isBlock: true,
  },
  prices: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'A JSON file with the prices, or, in the config file, the prices themselves; see docs/accounts.md. `none`: everything is free.',
    who: 'Operators who charge credits for jobs.',
    isBlock: true,
  },
  jwt: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'Tokens of your own issuer (JWTs) that callers may show instead of keys: a JSON file, or, in the config file, an object with `keys`, `issuer`, `audience` and, if they differ, `algorithms`, `accountClaim` and `scopesClaim`; see docs/accounts.md. `none`: API keys only.',
    who: 'Operators whose users already sign in elsewhere.',
    isBlock: true,
  },
} as const satisfies SettingTable

export const DEPLOYMENT_SETTINGS = {
  deploymentsDomain: {
    argument: '<domain>',
    fallback: 'none',
    read: readWordOr('none', null, readDomain),
    help: 'Deployments answer at `{deployment}.run.<domain>`. `none`: only under `/deployment/{deployment}`.',
    who: 'Operators with a wildcard name and certificate, to give each deployment an address.',
  },
  poolHook: {
    argument: '<url or command>',
    fallback: 'none',
    read: readWordOr('none', null, readPoolHook),
    help: 'Called when jobs wait and a pool has no worker, and when a pool has been idle: an http(s) address that gets a POST, or an absolute path of a program that gets the same JSON on its input. See docs/deployments.md.',
    who: 'Operators who start and stop machines by demand.',
  },
  poolHookSecret: {
    argument: null,
    fallback: 'none',
    read: readWordOr('none', null, readWebhookSecret),
    help: 'Signs what is sent to an address of `poolHook`, as `whsec_` and 24 to 64 bytes in base64 (docs/webhooks.md). `none`: the service signs with a key of its own, which receivers cannot verify.',
    who: 'Operators whose receiver of these calls checks who makes them.',
    isSecret: true,
  },
} as const satisfies SettingTable

export const WEBHOOK_SETTINGS = {
  webhookPrivateNetwork: {
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Lets accounts name addresses of private networks, and plain http. Whoever may add a webhook can then make the service call machines that only it can reach.',
    who: 'Operators whose receivers are in their own network.',
  },
  moderation: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'Hooks of your own that are asked before a run begins and before its outputs are handed out, and allow, refuse or change them: a JSON file, or, in the config file, an object. `none`: nobody is asked. See docs/moderation.md.',
    who: 'Operators who answer for what their service takes and makes.',
    isBlock: true,
    isSecret: true,
  },
} as const satisfies SettingTable

function readAccount(text: string): string {
  if (/^[\x21-\x2b\x2d-\x7e]{1,200}$/.test(text)) return text
  throw new Error('has an item that is no id of an account; give for example acme,studio')
}

const NOBODY: readonly string[] = []

/** Environments: who may have them built. */
export const BUILD_SETTINGS = {
  builds: {
    argument: '<accounts>',
    fallback: 'none',
    read: readWordOr('none', NOBODY, readWordOr('all', 'all', readList(readAccount))),
    help: 'The accounts that may define environments and have them built, comma separated (docs/environments.md); `local` is the one account of the local kind. Whoever may runs code of their own on the machines that build and run them. `all`: every account. `none`: nobody.',
    who: 'Operators who let accounts bring their own node packs and models.',
  },
} as const satisfies SettingTable
