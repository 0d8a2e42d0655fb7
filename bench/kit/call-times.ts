/** Times every answer of a load by itself: autocannon's histogram has whole milliseconds, and bars here are of one. */
import autocannon from 'autocannon'

export interface CallTimes {
  readonly p50: number
  readonly p99: number
  readonly perSecond: number
}

interface Target {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

interface CallLoad {
  readonly connections: number
  readonly seconds: number
  readonly body: string
}

let count = 0

/** Every call has an idempotency key of its own: otherwise all but the first would be replays. */
export function measureCalls({ url, headers }: Target, { connections, seconds, body }: CallLoad): Promise<CallTimes> {
  const times: number[] = []
  const { promise, resolve, reject } = Promise.withResolvers<CallTimes>()
  const nextHeaders = () => ({
    'content-type': 'application/json',
    'idempotency-key': `k${Date.now()}-${count++}`,
    ...headers,
  })
  const run = autocannon(
    {
      ...{ url, connections, body, duration: seconds, method: 'POST', headers: nextHeaders() },
      setupClient: (client) => client.setHeaders(nextHeaders()),
    },
    (error, result) => {
      if (error) return reject(error)
      if (result.non2xx > 0 || result.errors > 0)
        return reject(new Error(`${url}: ${result.non2xx} refused, ${result.errors} broken`))
      times.sort((a, b) => a - b)
      const at = (share: number) => times[Math.floor(times.length * share)]
      resolve({ p50: at(0.5), p99: at(0.99), perSecond: times.length / result.duration })
    },
  )
  run.on('response', (client, _status, _bytes, milliseconds) => {
    times.push(milliseconds)
    client.setHeaders(nextHeaders())
  })
  return promise
}

export function medianOf<Key extends string>(rounds: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return rounds.map((round) => round[key]).toSorted((a, b) => a - b)[Math.floor(rounds.length / 2)]
}
