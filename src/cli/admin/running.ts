/** `atelier engines` and `nodes`, and a cancel of any job: what an operator sees of a running service and can do to it. */
import type { Command } from 'commander'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { readWorkflowFile } from '../run/workflow-file.ts'
import type { Finish, Terminal } from '../terminal.ts'
import type { NodeWire } from './admin-answers.ts'
import { type AdminCommand, addAdminCommand, type Options, toPairs, toTable } from './admin-command.ts'

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
  const engines = program.command('engines')
  addWarm(engines, { terminal, finish })
  addAdminCommand<{ readonly engines: readonly EngineWire[] }>(
    engines
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

interface WarmWire {
  readonly weights: readonly string[]
  readonly workflow: object | null
}

function addWarm(engines: Command, { terminal, finish }: { readonly terminal: Terminal; readonly finish: Finish }) {
  addAdminCommand<WarmWire>(
    engines
      .command('warm')
      .description('what an engine loads before its first job; without flags it is shown, and loaded again')
      .argument('<id>', 'the engine')
      .option('--weights <names...>', 'files of weights, as workflows name them')
      .option('--workflow <file>', 'a workflow in API format, which is run for what it leaves loaded')
      .option('--off', 'give it work as soon as it answers'),
    {
      async ask(client, options, [id]) {
        const path = `/engines/${encodeURIComponent(id ?? '')}/warm`
        if (options['off'] === true) return client.call<WarmWire>('DELETE', path)
        const plan = readWish(options, terminal) ?? (await client.call<WarmWire>('GET', path))
        return isNothing(plan) ? plan : client.call<WarmWire>('PUT', path, plan)
      },
      show: (plan) =>
        isNothing(plan)
          ? 'it is given work as soon as it answers'
          : `it loads ${[...plan.weights, ...(plan.workflow === null ? [] : ['what the workflow needs'])].join(', ')} before it is given work`,
    },
    { terminal, finish },
  )
}

/** null: nothing new is wanted. */
function readWish({ weights, workflow }: Options, terminal: Terminal): WarmWire | null {
  const file = typeof workflow === 'string' ? readPlain(workflow, terminal) : null
  if (weights === undefined && file === null) return null
  return { weights: (weights as readonly string[] | undefined) ?? [], workflow: file }
}

function readPlain(file: string, { cwd }: Terminal): object {
  return JSON.parse(stringifyLosslessJson(readWorkflowFile(file, cwd))) as object
}

const isNothing = ({ weights, workflow }: WarmWire) => weights.length === 0 && workflow === null

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

interface JobStateWire {
  readonly id: string
  readonly account_id: string
  readonly status: string
}

/** `atelier jobs cancel` of an operator: a job of any account. */
export const CANCEL_OF_ANY: AdminCommand<JobStateWire> = {
  ask: (client, _options, [id]) => client.call('POST', `/jobs/${encodeURIComponent(id ?? '')}/cancel`),
  show: ({ id, account_id, status }) =>
    toPairs([
      ['job', id],
      ['account', account_id],
      ['status', status],
    ]),
}
