/** `atelier keys`: the API keys of accounts. A key is printed once, when it is made. */
import type { Command } from 'commander'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { pathOf } from './accounts.ts'
import type { KeyWire, ShownKeyWire } from './admin-answers.ts'
import { addAdminCommand, type Options } from './admin-command.ts'
import { type AdminClient, textOf } from './connect.ts'
import { toPairs, toTable } from './layout.ts'

const DAY_MS = 86_400_000

export function addKeys(program: Command, terminal: Terminal, finish: Finish): void {
  const keys = program.command('keys').description('API keys of accounts')
  const parts = { terminal, finish }

  addAdminCommand(
    keys
      .command('create')
      .description('create a key; it is shown once')
      .requiredOption('--account <id>', 'whose key it is')
      .option('--scopes <list>', 'what it may do, comma separated, such as jobs:read,jobs:write; default: everything')
      .option('--name <text>', 'a name for people')
      .option('--expires <when>', 'a duration such as 90d, or a date such as 2027-01-01'),
    { ask: create, show: showNew },
    parts,
  )

  addAdminCommand(
    keys.command('list').description('list the keys of an account').requiredOption('--account <id>', 'the account'),
    { ask: (client, options) => client.call('GET', `${pathOf(accountOf(options))}/keys`), show: showList },
    parts,
  )

  addAdminCommand(
    keys
      .command('rotate')
      .description('give a key a new secret')
      .argument('<id>', 'the key’s id')
      .option('--overlap <duration>', 'how long the old secret still works, such as 1h; default: not at all'),
    { ask: rotate, show: showNew },
    parts,
  )

  addAdminCommand(
    keys.command('revoke').description('revoke a key: it is refused from now on').argument('<id>', 'the key’s id'),
    {
      ask: (client, _options, [id]) => client.call<KeyWire>('POST', `${keyPath(id)}/revoke`),
      show: ({ id }) => `revoked ${id}`,
    },
    parts,
  )
}

function accountOf(options: Options): string {
  return textOf(options, 'account') ?? ''
}

/** Accepts the id, or the whole key. */
export function keyIdOf(given = ''): string {
  return encodeURIComponent(/^atl_([0-9A-Za-z]{12})_/.exec(given)?.[1] ?? given)
}

function keyPath(given = ''): string {
  return `/keys/${keyIdOf(given)}`
}

function create(client: AdminClient, options: Options): Promise<ShownKeyWire> {
  const [scopes, name, expires] = [textOf(options, 'scopes'), textOf(options, 'name'), textOf(options, 'expires')]
  return client.call('POST', `${pathOf(accountOf(options))}/keys`, {
    ...(scopes !== null && { scopes: scopes.split(',').map((scope) => scope.trim()) }),
    ...(name !== null && { name }),
    ...(expires !== null && { expires_at: readExpiry(expires) }),
  })
}

function rotate(client: AdminClient, options: Options, [id]: readonly (string | undefined)[]): Promise<ShownKeyWire> {
  const overlap = textOf(options, 'overlap')
  const seconds = overlap === null ? 0 : Math.round(readDuration('--overlap', overlap) / 1000)
  return client.call('POST', `${keyPath(id)}/rotate`, { overlap_seconds: seconds })
}

export function readExpiry(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString()
  return new Date(Date.now() + readDuration('--expires', text)).toISOString()
}

function readDuration(flag: string, text: string): number {
  try {
    return readDurationMs({ min: 0, max: 3650 * DAY_MS })(text)
  } catch (error) {
    throw new CommandError(`${flag} ${JSON.stringify(text)} ${(error as Error).message}`, EXIT.usage)
  }
}

function showNew({ text, id, account_id, scopes, expires_at, previous_until }: ShownKeyWire): string {
  return toPairs([
    ['key', text],
    ['', 'keep it now: it is shown once and stored nowhere'],
    ['id', id],
    ['account', account_id],
    ['scopes', scopes ?? 'everything'],
    ['expires', expires_at ?? 'never'],
    ...(previous_until === null ? [] : ([['old secret until', previous_until]] as const)),
  ])
}

function showList({ keys }: { readonly keys: readonly KeyWire[] }): string {
  const rows = keys.map(({ id, name, scopes, created_at, expires_at, last_used_at, revoked_at }) => [
    id,
    name,
    scopes ?? 'everything',
    created_at,
    revoked_at === null ? (expires_at ?? 'never') : 'revoked',
    last_used_at,
  ])
  return toTable(['id', 'name', 'scopes', 'created', 'expires', 'last used'], rows, { empty: 'no keys' })
}
