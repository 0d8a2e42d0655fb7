/** `atelier engines`: what runs the jobs of a service, how each fares, and why one gets no work. */
import type { Command } from 'commander'
import type { Finish, Terminal } from '../terminal.ts'
import { addAdminCommand } from './admin-command.ts'
import { toTable } from './layout.ts'

interface EngineWire {
  readonly id: string
  readonly state: string
  readonly reason: string | null
  readonly running: number
  readonly concurrency: number
  readonly node_classes: number
  readonly weights: number
  readonly jobs: number
  readonly failures: number
}

export function addEngines(program: Command, terminal: Terminal, finish: Finish): void {
  addAdminCommand<{ readonly engines: readonly EngineWire[] }>(
    program
      .command('engines')
      .description('the engines of a service: state and its reason, jobs, node classes and weights')
      .option(
        '--refresh',
        'ask them first what they can run: files that were just put on a server are known afterwards',
      ),
    {
      ask: (client, { refresh }) =>
        refresh === true ? client.call('POST', '/engine-catalog/refresh') : client.call('GET', '/engines'),
      show: ({ engines }) => showEngines(engines),
    },
    { terminal, finish },
  )
}

function showEngines(engines: readonly EngineWire[]): string {
  const rows = engines.map((engine) => [
    engine.id,
    engine.state,
    `${engine.running}/${engine.concurrency}`,
    String(engine.jobs),
    String(engine.failures),
    String(engine.node_classes),
    String(engine.weights),
    engine.reason,
  ])
  return toTable(['engine', 'state', 'running', 'jobs', 'failures', 'classes', 'weights', 'reason'], rows, {
    empty: 'no engine is known; start one with: atelier serve',
  })
}
