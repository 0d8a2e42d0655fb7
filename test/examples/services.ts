/** The services that scenarios ask. */
import { startTestApp } from '../support/app/start-app.ts'
import { ask, type World } from './scenario.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const DAY_MS = 24 * 60 * 60 * 1000

/** Shared by accounts, with the built-in engine; what asks is an account with credit, called acme. */
export async function startShared(): Promise<World> {
  const service = await startTestApp({
    settings: { kind: 'cloud', adminToken: ADMIN_TOKEN, webhookPrivateNetwork: 'true' },
    env: { ATELIER_SECRET_KEY: 'ab'.repeat(32) },
  })
  const operator = { url: service.url, token: ADMIN_TOKEN }
  await ask(operator, 'POST', '/admin/v1/accounts', { id: 'acme', tier: 'standard' })
  await ask(operator, 'POST', '/admin/v1/accounts/acme/grants', { usd: '25' })
  const { json } = await ask(operator, 'POST', '/admin/v1/accounts/acme/keys', { name: 'examples' })
  return toWorld(service.url, json.text, async () => service[Symbol.asyncDispose]())
}

function toWorld(url: string, token: string | null, end: () => Promise<void>): World {
  const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
  return {
    url,
    token,
    values: new Map([
      ['yesterday', at(-1)],
      ['now', at(0)],
      ['later', at(30)],
      ['month', at(0).slice(0, 7)],
    ]),
    [Symbol.asyncDispose]: end,
  }
}

export async function untilEnded(world: World, id: string): Promise<void> {
  // The stream of events ends with the job.
  const headers = { authorization: `Bearer ${world.token}` }
  await (await fetch(`${world.url}/api/v2/jobs/${id}/events`, { headers })).text()
}

/** So that what is submitted waits, however quick the machine is. */
export async function pause(world: World): Promise<void> {
  await ask(world, 'POST', '/api/v2/queue/pause', {})
}

export async function resume(world: World): Promise<void> {
  await ask(world, 'POST', '/api/v2/queue/resume')
}
