/** `atelier queue` and `atelier jobs move`: what an operator does to the queue of a running service by hand. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import { addAdminCommand, type CommandParts, type Options, toPairs, toTable } from './admin-command.ts'

interface PausesWire {
  readonly pauses: readonly {
    readonly scope: string
    readonly name: string | null
    readonly reason: string | null
    readonly paused_at: string
  }[]
}

function showPauses({ pauses }: PausesWire): string {
  const rows = pauses.map(({ scope, name, reason, paused_at: at }) => [
    scope === 'own' ? 'account (by itself)' : scope,
    name,
    at,
    reason,
  ])
  return toTable(['paused', 'name', 'since', 'reason'], rows, { empty: 'nothing is paused' })
}

function toKey({ pool, account }: Options) {
  if (pool !== undefined) return { scope: 'pool', name: pool }
  return account === undefined ? { scope: 'service' } : { scope: 'account', name: account }
}

function addWhat(command: Command): Command {
  return command
    .addOption(new Option('--pool <id>', 'only this pool: default, or a deployment').conflicts('account'))
    .option('--account <id>', 'only this account (default: the whole service)')
}

export function addQueue(program: Command, terminal: Terminal, finish: Finish): void {
  const queue = program.command('queue').description('pause and resume a running service, a pool or an account')
  const parts = { terminal, finish }
  addAdminCommand<PausesWire>(
    queue.command('status').description('what is paused'),
    { ask: (client) => client.call('GET', '/queue'), show: showPauses },
    parts,
  )
  addAdminCommand<PausesWire>(
    addWhat(
      queue.command('pause').description('begin no more jobs; what runs goes on, and submits are accepted'),
    ).option('--reason <text>', 'told to everybody whose jobs wait for it'),
    {
      ask: (client, options) =>
        client.call('POST', '/queue/pause', {
          ...toKey(options),
          ...(options['reason'] !== undefined && { reason: options['reason'] }),
        }),
      show: showPauses,
    },
    parts,
  )
  addAdminCommand<PausesWire>(
    addWhat(queue.command('resume').description('take back a pause')),
    { ask: (client, options) => client.call('POST', '/queue/resume', toKey(options)), show: showPauses },
    parts,
  )
}

interface MovedWire {
  readonly id: string
  readonly account_id: string
  readonly priority: number
  readonly queue_position: number | null
  readonly not_before: string | null
}

function readPriority(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value)) return value
  throw new InvalidArgumentError('It must be a whole number.')
}

/** `atelier jobs move`. */
export function addMove(jobs: Command, parts: CommandParts): void {
  const command = jobs
    .command('move')
    .description("move a job that waits inside its account's queue, or hold it until a time")
    .argument('<id>', 'the job')
    .addOption(new Option('--front', 'before all others').conflicts(['back', 'priority']))
    .addOption(new Option('--back', 'behind all others').conflicts('priority'))
    .option('--priority <number>', 'higher runs first', readPriority)
    .addOption(new Option('--not-before <time>', 'hold it until then').conflicts('now'))
    .option('--now', 'hold it no longer')
  addAdminCommand<MovedWire>(
    command,
    {
      ask: (client, { front, back, priority, notBefore, now }, [id]) =>
        client.call('PATCH', `/jobs/${encodeURIComponent(id ?? '')}`, {
          ...(front === true && { move: 'front' }),
          ...(back === true && { move: 'back' }),
          ...(priority !== undefined && { priority }),
          ...(notBefore !== undefined && { not_before: notBefore }),
          ...(now === true && { not_before: null }),
        }),
      show: (job) =>
        toPairs([
          ['job', job.id],
          ['account', job.account_id],
          ['position', String(job.queue_position ?? '')],
          ['priority', String(job.priority)],
          ['held until', job.not_before],
        ]),
    },
    parts,
  )
}
