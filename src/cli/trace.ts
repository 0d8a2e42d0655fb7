/**
 * `atelier trace`: where the time of a job or of a model call went, as a waterfall in the terminal. It needs no collector: a service
 * keeps the times of every job as long as the job itself, whether traces are on or not.
 */
import type { Command } from 'commander'
import { RefusedError, type RunClient } from './server/client.ts'
import { toFields } from './server/job-answers.ts'
import { addServerFlags, askServer } from './server/server-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from './terminal.ts'

type Options = Readonly<Record<string, unknown>>

/** As far as it is drawn; spec/console.openapi.json describes all of it. */
interface JobWire {
  readonly id: string
  readonly status: string
  readonly title: string
  readonly created_at: string
  readonly completed_at: string | null
  readonly trace_id?: string | null
  readonly outputs: number
  readonly attempts: readonly {
    readonly number: number
    readonly engine: string | null
    readonly from: string | null
    readonly to: string | null
    readonly why: string
  }[]
}

interface NodeWire {
  readonly id: string
  readonly class_type: string
  readonly state: string
  readonly started_at: string | null
  readonly ended_at: string | null
}

interface CallWire {
  readonly request_id: string
  readonly model: string
  readonly status: string
  readonly job_id: string | null
  readonly created_at: string
  readonly completed_at: string | null
}

interface Drawn {
  readonly title: string
  readonly traceId: string | null
  readonly pieces: readonly Piece[]
}

const ANSWER_WITHIN_MS = 30_000
// How many pages of the newest calls are searched; older calls are not found.
const CALL_PAGES = 10

export function addTrace(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('trace')
    .description('show where the time of a job or of a model call went')
    .argument('<id>', 'a job, or the request id of a model call')
    .option('--json', 'print the pieces as JSON')
  addServerFlags(command).action(async (id: string, options: Options) => finish(await trace(id, options, terminal)))
}

function trace(id: string, options: Options, terminal: Terminal): Promise<number> {
  return askServer(options, terminal, async (client) => {
    const drawn = await find(client, id)
    printLine(terminal.stdout, options['json'] === true ? JSON.stringify(drawn, null, 2) : show(drawn))
    return EXIT.ok
  })
}

async function find(client: RunClient, id: string): Promise<Drawn> {
  const read = (path: string): Promise<unknown> =>
    client.read(`${client.baseUrl}/console/v1${path}`, AbortSignal.timeout(ANSWER_WITHIN_MS))
  const calls = createCallSearch(read)
  try {
    const link = `/jobs/${encodeURIComponent(id)}`
    const [job, nodes] = await Promise.all([read(link), read(`${link}/nodes`)])
    const made = await calls.find((call) => call.job_id === id)
    return drawJob(job as JobWire, (toFields(nodes)['nodes'] ?? []) as readonly NodeWire[], made)
  } catch (error) {
    if (!(error instanceof RefusedError) || error.status !== 404) throw error
    const [call] = await calls.find((one) => one.request_id === id)
    if (call !== undefined) return drawCall(call)
    throw new CommandError(
      `there is no job ${id}, and no model call of this id among the newest; the token decides whose are seen`,
      EXIT.failed,
    )
  }
}

/** Those among the newest calls that fulfil the condition; none where the server keeps no list of them. */
function createCallSearch(read: (path: string) => Promise<unknown>) {
  return {
    async find(isIt: (call: CallWire) => boolean): Promise<readonly CallWire[]> {
      const found: CallWire[] = []
      let cursor: string | null = null
      for (let page = 0; page < CALL_PAGES; page++) {
        const query = new URLSearchParams({ limit: '100', ...(cursor !== null && { cursor }) })
        const answer = toFields(await read(`/calls?${query}`))
        found.push(...((answer['calls'] ?? []) as readonly CallWire[]).filter(isIt))
        cursor = typeof answer['next_cursor'] === 'string' ? answer['next_cursor'] : null
        if (cursor === null) break
      }
      return found
    },
  }
}

function drawCall(call: CallWire): Drawn {
  return { title: `model call ${call.request_id} · ${call.status}`, traceId: null, pieces: [toCallPiece(call, 0)] }
}

function toCallPiece(call: CallWire, depth: number): Piece {
  const { model, status, created_at: from, completed_at: to } = call
  return { name: model, depth, startMs: toMs(from), endMs: toMsOrNull(to), note: status === 'succeeded' ? '' : status }
}

function drawJob(job: JobWire, nodes: readonly NodeWire[], calls: readonly CallWire[]): Drawn {
  const createdMs = toMs(job.created_at)
  const endMs = toMsOrNull(job.completed_at)
  const attempts = job.attempts.filter(({ from }) => from !== null)
  const firstMs = attempts[0]?.from == null ? endMs : toMs(attempts[0].from)
  const runs = attempts.map(({ number, engine, from, to, why }, index): Piece => {
    const isLast = index === attempts.length - 1
    const note = [engine ?? '', isLast && why === job.status ? '' : why].filter((text) => text !== '').join(', ')
    return { name: `run ${number}`, depth: 1, startMs: toMs(from ?? ''), endMs: to === null ? null : toMs(to), note }
  })
  const ran = nodes.flatMap((node) => toNodePiece(node, endMs)).toSorted((one, other) => one.startMs - other.startMs)
  const lastMs = Math.max(...ran.map((piece) => piece.endMs ?? Number.NaN))
  const storing: Piece[] =
    endMs === null || !Number.isFinite(lastMs) || job.outputs === 0
      ? []
      : [{ name: 'outputs and end', depth: 2, startMs: Math.min(lastMs, endMs), endMs, note: `${job.outputs} stored` }]
  return {
    title: `job ${job.id} · ${job.title} · ${job.status}`,
    traceId: job.trace_id ?? null,
    pieces: [
      { name: 'job', depth: 0, startMs: createdMs, endMs, note: job.status },
      { name: 'waited', depth: 1, startMs: createdMs, endMs: firstMs, note: '' },
      ...runs,
      ...ran,
      ...calls.map((call) => toCallPiece(call, 2)),
      ...storing,
    ],
  }
}

/** Nodes that did not run take no time. Of an earlier attempt no node is kept. */
function toNodePiece(node: NodeWire, jobEndMs: number | null): Piece[] {
  if (node.started_at === null) return []
  const endMs = toMsOrNull(node.ended_at) ?? jobEndMs
  const note = node.state === 'done' ? '' : node.state
  return [{ name: `${node.class_type} #${node.id}`, depth: 2, startMs: toMs(node.started_at), endMs, note }]
}

function toMs(text: string): number {
  return Date.parse(text)
}

function toMsOrNull(text: string | null): number | null {
  return text === null ? null : toMs(text)
}

function show({ title, traceId, pieces }: Drawn): string {
  const nowMs = Date.now()
  const [whole] = pieces
  const total = whole === undefined ? '' : ` · ${toSeconds((whole.endMs ?? nowMs) - whole.startMs)}`
  return [
    `${toPrintable(title)}${total}`,
    ...(traceId === null ? [] : [`trace ${toPrintable(traceId)}`]),
    '',
    ...toWaterfall(pieces, nowMs),
  ].join('\n')
}

interface Piece {
  readonly name: string
  /** How deep it is indented. */
  readonly depth: number
  readonly startMs: number
  /** null: it goes on. */
  readonly endMs: number | null
  /** What is said behind the bar; '' for nothing. */
  readonly note: string
}

const BAR_WIDTH = 40
const MAX_NAME_WIDTH = 34

/** `nowMs`: until when whatever goes on is drawn. */
function toWaterfall(pieces: readonly Piece[], nowMs: number): string[] {
  const startMs = Math.min(...pieces.map((piece) => piece.startMs))
  const endMs = Math.max(startMs + 1, ...pieces.map((piece) => piece.endMs ?? nowMs))
  const names = pieces.map(({ name, depth }) => cut(`${'  '.repeat(depth)}${toPrintable(name)}`, MAX_NAME_WIDTH))
  const nameWidth = Math.max(...names.map((name) => name.length))
  const toColumn = (atMs: number) => Math.round(((atMs - startMs) / (endMs - startMs)) * BAR_WIDTH)
  return pieces.map((piece, index) => {
    const until = piece.endMs ?? nowMs
    const from = Math.min(BAR_WIDTH - 1, toColumn(piece.startMs))
    const length = Math.max(1, toColumn(until) - from)
    const bar = `${' '.repeat(from)}${'█'.repeat(length)}`.padEnd(BAR_WIDTH)
    const time = `${toSeconds(until - piece.startMs)}${piece.endMs === null ? '…' : ' '}`
    return `${names[index]!.padEnd(nameWidth)}  ${time.padStart(10)}  ${bar}  ${toPrintable(piece.note)}`.trimEnd()
  })
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}

function toSeconds(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : `${(ms / 1000).toFixed(ms < 100_000 ? 2 : 0)} s`
}
