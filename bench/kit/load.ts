/** Sends request load and measures the CPU time that a request costs the server, which is far less noisy than wall time. */
import autocannon from 'autocannon'
import type { ServerChild } from './server-child.ts'

export interface LoadResult {
  readonly answered: number
  readonly requestsPerSecond: number
  readonly cpuMicrosPerRequest: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface LoadOptions {
  readonly path: string
  readonly connections: number
  readonly seconds: number
  readonly method?: 'GET' | 'POST'
  readonly body?: string
  readonly headers?: Record<string, string>
  readonly expectStatus: number
  /** A header that gets another value with every request. */
  readonly uniqueHeader?: string
}

export async function measureLoad(server: ServerChild, options: LoadOptions): Promise<LoadResult> {
  const before = await server.usage()
  const result = await autocannon({
    url: server.url + options.path,
    connections: options.connections,
    duration: options.seconds,
    method: options.method ?? 'GET',
    body: options.body,
    headers:
      options.uniqueHeader === undefined ? options.headers : { ...options.headers, [options.uniqueHeader]: '[<id>]' },
    ...(options.uniqueHeader === undefined ? {} : { idReplacement: true }),
  })
  const after = await server.usage()
  const answered = Number(
    (result as unknown as { statusCodeStats: Record<string, { count: number }> }).statusCodeStats[
      String(options.expectStatus)
    ]?.count ?? 0,
  )
  if (answered === 0 || result.errors > 0 || answered < result.requests.total * 0.999)
    throw new Error(
      `${options.path}: expected status ${options.expectStatus}, got ${JSON.stringify((result as unknown as { statusCodeStats: unknown }).statusCodeStats)}, errors ${result.errors}`,
    )
  return {
    answered,
    requestsPerSecond: answered / result.duration,
    cpuMicrosPerRequest: (after.cpuMicros - before.cpuMicros) / answered,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  }
}

/** Alternates rounds between servers, so that a slow minute of the machine affects all of them, and keeps each one's median round. */
export async function alternate<Key extends string>(
  rounds: number,
  runs: Record<Key, () => Promise<LoadResult>>,
): Promise<Record<Key, LoadResult>> {
  const keys = Object.keys(runs) as Key[]
  const results = Object.fromEntries(keys.map((key) => [key, [] as LoadResult[]])) as Record<Key, LoadResult[]>
  for (let round = 0; round < rounds; round++) for (const key of keys) results[key].push(await runs[key]())
  return Object.fromEntries(keys.map((key) => [key, medianOf(results[key])])) as Record<Key, LoadResult>
}

function medianOf(results: LoadResult[]): LoadResult {
  return results.toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond)[Math.floor(results.length / 2)]
}
