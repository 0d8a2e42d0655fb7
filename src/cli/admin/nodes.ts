/** `atelier nodes`: the processes of a service, what each does and what it holds. */
import type { Command } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import type { NodeWire } from './admin-answers.ts'
import { addAdminCommand } from './admin-command.ts'
import { toTable } from './layout.ts'

export function addNodes(program: Command, terminal: Terminal, finish: Finish): void {
  addAdminCommand<{ readonly nodes: readonly NodeWire[] }>(
    program
      .command('nodes')
      .description('the processes of a service: role, address, when last seen, and what each holds'),
    { ask: (client) => client.call('GET', '/nodes'), show: ({ nodes }) => showNodes(nodes, Date.now()) },
    { terminal, finish },
  )
}

const SHORT_ID = 8

function showNodes(nodes: readonly NodeWire[], nowMs: number): string {
  const rows = nodes.map(({ id, state, role, version, host, url, seen_at, workers, holds }) => [
    id.slice(0, SHORT_ID),
    state,
    role,
    version,
    host,
    url,
    `${Math.max(0, Math.round((nowMs - Date.parse(seen_at)) / 1000))} s ago`,
    Object.entries(workers)
      .filter(([, count]) => count > 0)
      .map(([pool, count]) => `${pool} ${count}`),
    toHeld(holds),
  ])
  return toTable(['node', 'state', 'role', 'version', 'host', 'address', 'seen', 'workers', 'holds'], rows, {
    empty: 'no process is known; start one with: atelier serve',
  })
}

function toHeld({ jobs, calls, engines, chores }: NodeWire['holds']): string[] {
  return [
    ...(jobs > 0 ? [`${jobs} jobs`] : []),
    ...(calls > 0 ? [`${calls} calls`] : []),
    ...(engines.length > 0 ? [`engines ${engines.join(' ')}`] : []),
    ...chores,
  ]
}
