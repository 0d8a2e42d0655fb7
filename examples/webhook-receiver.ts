/**
 * Receives webhooks of the service and checks who sent them: node examples/webhook-receiver.ts <secret> [address]
 * The secret is that of the webhook, or the account's common one (GET /api/v2/webhooks/secret).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const [secret = '', address = 'http://127.0.0.1:9000'] = process.argv.slice(2)
const { port, hostname } = new URL(address)
const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
const handled = new Set<string>()
const MAX_AGE_SECONDS = 300

function isGenuine(headers: Record<string, string | string[] | undefined>, body: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures } = headers
  if (Math.abs(Date.now() / 1000 - Number(seconds)) > MAX_AGE_SECONDS) return false
  const ours = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`)
  // Several while one secret replaces another.
  return String(signatures)
    .split(' ')
    .map((text) => Buffer.from(text))
    .some((theirs) => theirs.length === ours.length && timingSafeEqual(theirs, ours))
}

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  if (!isGenuine(request.headers, body)) return void response.writeHead(401).end()
  // A message may come again, under the same id.
  const id = String(request.headers['webhook-id'])
  if (!handled.has(id)) {
    const { type, data } = JSON.parse(body)
    console.log(type, data.job_id ?? data.request_id ?? '')
    handled.add(id)
  }
  response.writeHead(204).end()
}).listen(Number(port), hostname)
