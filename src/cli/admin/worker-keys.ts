/** `atelier workers`: the keys of workers that join from other machines. A key is printed once, when it is made. */
import type { Command } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import type { ShownWorkerKeyWire, WorkerKeyWire } from './admin-answers.ts'
import { addAdminCommand, type Options } from './admin-command.ts'
import { type AdminClient, textOf } from './connect.ts'
import { keyIdOf, readExpiry } from './keys.ts'
import { toPairs, toTable } from './layout.ts'

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
      .option('--name <text>', 'a name for people, such as that of the machine')
      .option('--expires <when>', 'a duration such as 90d, or a date such as 2027-01-01'),
    { ask: create, show: showNew },
    parts,
  )

  addAdminCommand(
    workers.command('list').description('list the keys of workers'),
    { ask: (client) => client.call('GET', '/workers/keys'), show: showList },
    parts,
  )

  addAdminCommand(
    workers
      .command('revoke')
      .description('revoke the key of a worker: it is refused from now on, and its jobs go back to the queue')
      .argument('<id>', 'the key’s id'),
    {
      ask: (client, _options, [id]) => client.call<WorkerKeyWire>('POST', `/workers/keys/${keyIdOf(id)}/revoke`),
      show: ({ id }) => `revoked ${id}`,
    },
    parts,
  )
}

function create(client: AdminClient, options: Options): Promise<ShownWorkerKeyWire> {
  const [pools, name, expires] = [textOf(options, 'pools'), textOf(options, 'name'), textOf(options, 'expires')]
  return client.call('POST', '/workers/keys', {
    ...(pools !== null && { pools: pools.split(',').map((pool) => pool.trim()) }),
    ...(options['credentials'] === true && { credentials: true }),
    ...(name !== null && { name }),
    ...(expires !== null && { expires_at: readExpiry(expires) }),
  })
}

function showNew({ text, id, pools, credentials, expires_at, takes_workers }: ShownWorkerKeyWire): string {
  return toPairs([
    ['key', text],
    ['', 'keep it now: it is shown once and stored nowhere'],
    ['id', id],
    ['pools', pools],
    ['credentials', credentials ? 'its runs get those of their jobs' : 'none'],
    ['expires', expires_at ?? 'never'],
    ...(takes_workers ? [] : ([['', 'restart the service: it was started without worker keys']] as const)),
  ])
}

function showList({ keys }: { readonly keys: readonly WorkerKeyWire[] }): string {
  const rows = keys.map(({ id, name, pools, created_at, expires_at, last_used_at, revoked_at }) => [
    id,
    name,
    pools,
    created_at,
    revoked_at === null ? (expires_at ?? 'never') : 'revoked',
    last_used_at,
  ])
  return toTable(['id', 'name', 'pools', 'created', 'expires', 'last used'], rows, { empty: 'no keys' })
}
