/** Sends or fetches large bodies from a process of its own and reports how long it took. */
import { request } from 'node:http'
import { readSettings, reportToParent } from '../kit/server-child.ts'

readSettings()
const CHUNK = Buffer.alloc(1 << 20)
for (let index = 0; index < CHUNK.length; index += 4) CHUNK.writeUInt32LE((index * 2_654_435_761) >>> 0, index)

interface Transfer {
  readonly url: string
  readonly megabytes: number
  readonly head: string
  readonly tail: string
  readonly contentType: string
  /** Makes the bytes of every round new, so that nothing is deduplicated. */
  readonly salt: number
  /** Left out: POST, and no others. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

function upload(transfer: Transfer): Promise<{ millis: number; status: number; body: string }> {
  const startedAt = performance.now()
  CHUNK.writeUInt32LE(transfer.salt, 0)
  return new Promise((resolve, reject) => {
    const outgoing = request(
      transfer.url,
      { method: transfer.method ?? 'POST', headers: { ...transfer.headers, 'content-type': transfer.contentType } },
      (response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('end', () =>
          resolve({ millis: performance.now() - startedAt, status: response.statusCode ?? 0, body }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.write(transfer.head)
    let sent = 0
    const pump = () => {
      while (sent < transfer.megabytes) {
        sent++
        if (!outgoing.write(CHUNK)) {
          outgoing.once('drain', pump)
          return
        }
      }
      outgoing.end(transfer.tail)
    }
    pump()
  })
}

interface Wanted {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Follows redirects, as every client does. */
function download(
  { url, headers = {} }: Wanted,
  startedAt = performance.now(),
): Promise<{ millis: number; bytes: number }> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (response) => {
      let bytes = 0
      const { location } = response.headers
      if (location !== undefined) {
        response.resume()
        return void download({ url: location }, startedAt).then(resolve, reject)
      }
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      response.on('end', () => resolve({ millis: performance.now() - startedAt, bytes }))
    })
      .on('error', reject)
      .end()
  })
}

reportToParent('', {
  handle: (command, argument) => (command === 'upload' ? upload(argument as Transfer) : download(argument as Wanted)),
  async close() {},
})
