/** The files that every node of a trial is started with: models of a provider of our own, and prices. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const PAINT_MICROS = 40_000
export const FILM_MICROS = 100_000
export const JOB_PRICE = { perSecondMicros: 1000, minimumMicros: 500, holdMicros: 2000 }

export async function writeSettings(
  folder: string,
  providerPort: number,
): Promise<{ flags: string[]; providers: string }> {
  const put = (path: string, content: object) => writeFile(join(folder, path), JSON.stringify(content))
  await mkdir(join(folder, 'models', 'chaos'), { recursive: true })
  await put('models/chaos/provider.json', {
    ...{ provider: 'chaos', title: 'Chaos', base_url: 'https://chaos.test', api_hosts: [], headers: {}, settings: {} },
    ...{ auth: [{ headers: { authorization: '{key}' } }], concurrency: 64, outcomes: [], messages: ['error'] },
  })
  const headers = { 'x-submit-key': '{submit_key}' }
  await put('models/chaos/paint.json', {
    ...describeModel('chaos/paint', 'direct', '0.04'),
    adapter: {
      deduplicates: true,
      operations: [{ name: 'paint', path: '/paint', headers, returns: 'json' }],
      assets: ['generation'],
    },
  })
  const task = {
    ...{ id: 'id', poll: { path: '/film/{id}' }, interval_ms: 250 },
    ...{ state: ['status'], success: ['done'], failed: ['failed'] },
  }
  await put('models/chaos/film.json', {
    ...describeModel('chaos/film', 'poll', '0.10'),
    adapter: {
      operations: [{ name: 'film', path: '/film', headers, returns: 'task', task }],
      assets: ['generation'],
    },
  })
  const base_url = `http://127.0.0.1:${providerPort}`
  await put('providers.json', { chaos: { key: 'none', base_url }, '*': { allow_private_network: true } })
  await put('prices.json', { pools: { '*': JOB_PRICE } })
  const file = (name: string) => join(folder, name)
  return { flags: ['--catalogs', file('models'), '--prices', file('prices.json')], providers: file('providers.json') }
}

function describeModel(id: string, returns: 'direct' | 'poll', usd: string): object {
  return {
    id,
    returns,
    billing: { charges_on_policy_rejection: 'no' },
    input: {
      modalities: ['text'],
      schema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
      example: { prompt: 'a fox' },
    },
    output: { modalities: ['text'], media_type: 'application/json', schema: {} },
    deadline_seconds: 60,
    price: { parts: [{ unit: 'request', usd }] },
  }
}
