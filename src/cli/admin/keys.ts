/** `atelier keys` and `atelier workers`: keys of accounts, and of workers that join from other machines. A key is printed once, when it is made. */
import type { Command } from 'commander'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { pathOf } from './accounts.ts'
import type { KeyWire, ShownKeyWire, ShownWorkerKeyWire, WorkerKeyWire } from './admin-answers.ts'
import {
  type AdminClient,
  addAdminCommand,
  type CommandParts,
  type Options,
  textOf,
  toPairs,
  toTable,
} from './admin-command.ts'

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
      .option('--endpoints <list>', 'call and see only these, comma separated, such as poster,thumb@production')
      .option('--name <text>', 'a name for people')
      .option(...EXPIRES_OPTION),
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

  const revoke = keys.command('revoke').description('revoke a key: it is refused from now on')
  addRevoke(revoke, '/keys', parts)
}

const EXPIRES_OPTION = ['--expires <when>', 'a duration such as 90d, or a date such as 2027-01-01'] as const

/** Revokes one of the keys below a path of the admin API. */
function addRevoke(command: Command, path: string, parts: CommandParts): void {
  addAdminCommand(
    command.argument('<id>', 'the key’s id'),
    {
      ask: (client, _options, [id]) => client.call<{ id: string }>('POST', `${path}/${keyIdOf(id)}/revoke`),
      show: ({ id }) => `revoked ${id}`,
    },
    parts,
  )
}

function accountOf(options: Options): string {
  return textOf(options, 'account') ?? ''
}

/** Accepts the id, or the whole key. */
function keyIdOf(given = ''): string {
  return encodeURIComponent(/^atl_([0-9A-Za-z]{12})_/.exec(given)?.[1] ?? given)
}

function create(client: AdminClient, options: Options): Promise<ShownKeyWire> {
  const endpoints = textOf(options, 'endpoints')
  return client.call('POST', `${pathOf(accountOf(options))}/keys`, {
    ...toKeyBody(options, 'scopes'),
    ...(endpoints !== null && { endpoints: toList(endpoints) }),
  })
}

/** The body of a new key, with the list of what it may do or reach. */
function toKeyBody(options: Options, list: 'scopes' | 'pools'): Readonly<Record<string, unknown>> {
  const [items, name, expires] = [textOf(options, list), textOf(options, 'name'), textOf(options, 'expires')]
  return {
    ...(items !== null && { [list]: toList(items) }),
    ...(name !== null && { name }),
    ...(expires !== null && { expires_at: readExpiry(expires) }),
  }
}

function toList(text: string): string[] {
  return text.split(',').map((item) => item.trim())
}

function rotate(client: AdminClient, options: Options, [id]: readonly (string | undefined)[]): Promise<ShownKeyWire> {
  const overlap = textOf(options, 'overlap')
  const seconds = overlap === null ? 0 : Math.round(readDuration('--overlap', overlap) / 1000)
  return client.call('POST', `/keys/${keyIdOf(id)}/rotate`, { overlap_seconds: seconds })
}

function readExpiry(text: string): string {
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

function showNew({ text, id, account_id, scopes, endpoints, expires_at, previous_until }: ShownKeyWire): string {
  return toPairs([
    ...toShownOnce(text),
    ['id', id],
    ['account', account_id],
    ['scopes', scopes ?? 'everything'],
    ...(endpoints === null ? [] : ([['endpoints', endpoints]] as const)),
    ['expires', expires_at ?? 'never'],
    ...(previous_until === null ? [] : ([['old secret until', previous_until]] as const)),
  ])
}

function toShownOnce(text: string) {
  return [
    ['key', text],
    ['', 'keep it now: it is shown once and stored nowhere'],
  ] as const
}

function showList({ keys }: { readonly keys: readonly KeyWire[] }): string {
  return toKeyTable(
    keys.map((key) => ({ ...key, may: key.endpoints ?? key.scopes ?? 'everything' })),
    'scopes',
  )
}

type ListedKey = Omit<KeyWire, 'account_id' | 'scopes' | 'endpoints' | 'previous_until'> & {
  readonly may: string | readonly string[]
}

/** The keys, with a column that says what each of them may do or reach. */
function toKeyTable(keys: readonly ListedKey[], column: 'scopes' | 'pools'): string {
  const rows = keys.map(({ id, name, may, created_at, expires_at, last_used_at, revoked_at }) => [
    id,
    name,
    may,
    created_at,
    revoked_at === null ? (expires_at ?? 'never') : 'revoked',
    last_used_at,
  ])
  return toTable(['id', 'name', column, 'created', 'expires', 'last used'], rows, { empty: 'no keys' })
}

const KEYS_PATH = '/workers/keys'

export function addWorkerKeys(program: Command, terminal: Terminal, finish: Finish): void {
  const workers = program.command('workers').description('keys of workers that join from other machines')
  const parts = { terminal, finish }

  addAdminCommand(
    workers
      .command('create')
      .description('create a key for a worker; it is shown once')
      .option('--pools <list>', 'whose jobs it may take, comma separated; default: default')
      .option(
        '--credentials',
        'its runs get the credentials that came with their jobs: partner nodes of ComfyUI need them',
      )
      .option(
        '--builds',
        'its machines may make releases of accounts and serve them, which runs code of these accounts',
      )
      .option('--name <text>', 'a name for people, such as that of the machine')
      .option(...EXPIRES_OPTION),
    { ask: createWorkerKey, show: showNewWorkerKey },
    parts,
  )

  addAdminCommand(
    workers.command('list').description('list the keys of workers'),
    { ask: (client) => client.call('GET', KEYS_PATH), show: showWorkerKeys },
    parts,
  )

  const revoke = workers
    .command('revoke')
    .description('revoke the key of a worker: it is refused from now on, and its jobs go back to the queue')
  addRevoke(revoke, KEYS_PATH, parts)
}

function createWorkerKey(client: AdminClient, options: Options): Promise<ShownWorkerKeyWire> {
  return client.call('POST', KEYS_PATH, {
    ...toKeyBody(options, 'pools'),
    ...(options['credentials'] === true && { credentials: true }),
    ...(options['builds'] === true && { builds: true }),
  })
}

function showNewWorkerKey({
  text,
  id,
  pools,
  credentials,
  builds,
  expires_at,
  takes_workers,
}: ShownWorkerKeyWire): string {
  return toPairs([
    ...toShownOnce(text),
    ['id', id],
    ['pools', pools],
    ['credentials', credentials ? 'its runs get those of their jobs' : 'none'],
    ['builds', builds ? 'its machines may make and serve releases' : 'none'],
    ['expires', expires_at ?? 'never'],
    ...(takes_workers ? [] : ([['', 'restart the service: it was started without worker keys']] as const)),
  ])
}

function showWorkerKeys({ keys }: { readonly keys: readonly WorkerKeyWire[] }): string {
  return toKeyTable(
    keys.map((key) => ({ ...key, may: key.pools })),
    'pools',
  )
}
