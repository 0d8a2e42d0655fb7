/**
 * One Postgres server for all processes of a test run, started when the first of them asks. `ATELIER_TEST_POSTGRES` names a server that
 * is there already.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PostgresServer } from './postgres-server.ts'

const PLACE = 'ATELIER_TEST_POSTGRES_FROM'

export interface PostgresLender extends AsyncDisposable {
  /** For the processes that may ask. */
  readonly env: Readonly<Record<string, string>>
}

export async function lendPostgres(): Promise<PostgresLender> {
  let server: Promise<PostgresServer> | null = null
  // Only now: a run without Postgres need not load its driver.
  const start = async () => (await import('./postgres-server.ts')).startPostgres()
  const desk = createServer((_, response) => {
    server ??= start()
    server.then(
      ({ url }) => response.end(url),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  })
  await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve))
  return {
    env: { [PLACE]: `http://127.0.0.1:${(desk.address() as AddressInfo).port}/` },
    async [Symbol.asyncDispose]() {
      desk.close()
      desk.closeAllConnections()
      await server?.then(
        (started) => started[Symbol.asyncDispose](),
        () => {},
      )
    },
  }
}

/** The address of the server of this run; null: this process was started by hand and needs one of its own. */
export async function askForPostgres(): Promise<string | null> {
  const { ATELIER_TEST_POSTGRES: url, [PLACE]: place } = process.env
  if (url !== undefined) return url
  if (place === undefined) return null
  const answer = await fetch(place)
  if (!answer.ok) throw new Error(`no Postgres: ${await answer.text()}`)
  return answer.text()
}
