/** What is needed to understand a flaw afterwards: which faults were on, what the nodes said, and what became of the job. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { Flaw } from '../check/check-told.ts'
import type { FaultRecord } from '../faults/strike.ts'
import type { ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'

export interface Evidence {
  readonly flaw: Flaw
  /** What clients were told of it. */
  readonly told: readonly ToldAt[]
  readonly faults: readonly FaultRecord[]
  /** Lines of the nodes about it, and their warnings around that moment. */
  readonly logs: readonly string[]
  /** The rows of it. */
  readonly rows: readonly string[]
}

interface Parts {
  readonly world: World
  readonly told: readonly ToldAt[]
  readonly faults: readonly FaultRecord[]
  readonly flaws: readonly Flaw[]
}

// Of a trial that went wrong altogether the first flaws say enough.
const MAX_FLAWS = 10
const AROUND_MS = 15_000
const MAX_LINES = 80
const MAX_LINE = 600
const LOUD: ReadonlySet<string> = new Set(['warn', 'error', 'fatal'])

export async function gatherEvidence({ world, told, faults, flaws }: Parts): Promise<Evidence[]> {
  const chosen = flaws.slice(0, MAX_FLAWS).map((flaw) => {
    const own = flaw.id === null ? [] : told.filter((line) => isAboutLine(line, flaw.id))
    const times = [...own.map(({ at }) => at), ...(flaw.at === null ? [] : [flaw.at])]
    const from = Math.min(...times) - AROUND_MS
    const to = Math.max(...times) + AROUND_MS
    return { flaw, own, from, to, logs: [] as string[] }
  })
  for (const node of [...world.apis, ...world.workers]) {
    const lines = createInterface({ input: createReadStream(node.logFile) })
    for await (const line of lines) {
      const { time, level, msg } = parse(line)
      for (const { flaw, from, to, logs } of chosen) {
        const isAbout = flaw.id !== null && line.includes(flaw.id)
        const isLoud = time >= from && time <= to && (LOUD.has(level) || msg.startsWith('***'))
        if ((isAbout || isLoud) && logs.length < MAX_LINES) logs.push(`${node.name} ${line.slice(0, MAX_LINE)}`)
      }
    }
  }
  const rows = await readRows(
    world,
    chosen.map(({ flaw }) => flaw),
  )
  return chosen.map(({ flaw, own, from, to, logs }, index) => ({
    flaw,
    told: own,
    faults: faults.filter(({ beganAt, mendedAt }) => beganAt <= to && (mendedAt ?? to) >= from),
    logs,
    rows: rows[index] ?? [],
  }))
}

function isAboutLine(line: ToldAt, id: string | null): boolean {
  return ('id' in line && line.id === id) || ('key' in line && line.key === id)
}

function parse(line: string): { readonly time: number; readonly level: string; readonly msg: string } {
  try {
    const { time = 0, level = '', msg = '' } = JSON.parse(line)
    return { time: new Date(time).getTime(), level, msg }
  } catch {
    return { time: 0, level: '', msg: '' }
  }
}

const ABOUT = `
  SELECT row_to_json(job)::text AS text FROM job WHERE id::text = $1
  UNION ALL SELECT row_to_json(job_done)::text FROM job_done WHERE id::text = $1
  UNION ALL SELECT row_to_json(output)::text FROM output WHERE job_id::text = $1
  UNION ALL SELECT row_to_json(asset)::text FROM asset WHERE id = $1
  UNION ALL SELECT row_to_json(ledger_entry)::text FROM ledger_entry WHERE reference LIKE '%' || $1
  UNION ALL SELECT row_to_json(router_call)::text FROM router_call WHERE key = $1`

async function readRows(world: World, flaws: readonly Flaw[]): Promise<string[][]> {
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    const all: string[][] = []
    for (const { id } of flaws)
      all.push(id === null ? [] : (await client.query(ABOUT, [id])).rows.map(({ text }) => String(text).slice(0, 2000)))
    return all
  } finally {
    await client.end()
  }
}
