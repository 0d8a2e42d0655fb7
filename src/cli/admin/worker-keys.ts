/** `atelier workers`: the keys of workers that join from other machines. A key is printed once, when it is made. */
import type { Command } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import type { ShownWorkerKeyWire, WorkerKeyWire } from './admin-answers.ts'
import { addAdminCommand, type Options } from './admin-command.ts'
import type { AdminClient } from './connect.ts'
import { addRevoke, EXPIRES_OPTION, toKeyBody, toKeyTable, toShownOnce } from './keys.ts'
import { toPairs } from './layout.ts'

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
      .option('--name <text>', 'a name for people, such as that of the machine')
      .option(...EXPIRES_OPTION),
    { ask: create, show: showNew },
    parts,
  )

  addAdminCommand(
    workers.command('list').description('list the keys of workers'),
    { ask: (client) => client.call('GET', KEYS_PATH), show: showList },
    parts,
  )

  const revoke = workers
    .command('revoke')
    .description('revoke the key of a worker: it is refused from now on, and its jobs go back to the queue')
  addRevoke(revoke, KEYS_PATH, parts)
}

function create(client: AdminClient, options: Options): Promise<ShownWorkerKeyWire> {
  return client.call('POST', KEYS_PATH, {
    ...toKeyBody(options, 'pools'),
    ...(options['credentials'] === true && { credentials: true }),
  })
}

function showNew({ text, id, pools, credentials, expires_at, takes_workers }: ShownWorkerKeyWire): string {
  return toPairs([
    ...toShownOnce(text),
    ['id', id],
    ['pools', pools],
    ['credentials', credentials ? 'its runs get those of their jobs' : 'none'],
    ['expires', expires_at ?? 'never'],
    ...(takes_workers ? [] : ([['', 'restart the service: it was started without worker keys']] as const)),
  ])
}

function showList({ keys }: { readonly keys: readonly WorkerKeyWire[] }): string {
  return toKeyTable(
    keys.map((key) => ({ ...key, may: key.pools })),
    'pools',
  )
}
