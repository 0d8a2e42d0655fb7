/**
 * The whole service as a router in front of the fake provider: an account that pays, a priced model, everything durable. `plain`
 * calls the provider with next to nothing in between; `declarative` by the rules of a shipped provider, as users do.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../lib/log.ts'
import { startApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import { readModel } from '../../src/domain/models/catalog/read-model.ts'
import { addPaidAccount } from '../../test/support/app/paid-account.ts'
import { readSettings, reportToParent } from '../kit/server-child.ts'
import { createBenchProvider } from './bench-provider.ts'

interface Settings {
  readonly providerUrl: string
  readonly adapter?: 'plain' | 'declarative'
  readonly [flag: string]: unknown
}

const { providerUrl, adapter = 'plain', ...flags } = readSettings<Settings>()
const dataDir = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
const account = await addPaidAccount(dataDir, {
  micros: 1_000_000_000_000,
  overrides: { routerConcurrency: 1_000_000, committedSpendMicros: 1_000_000_000_000 },
})
const providersFile = join(dataDir, 'providers.json')
if (adapter === 'declarative') {
  const openrouter = { key: 'bench', base_url: `${providerUrl}/v1`, concurrency: 10_000 }
  writeFileSync(providersFile, JSON.stringify({ openrouter, '*': { allow_private_network: true } }))
}
const texts = Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, String(value)]))
const { config, secrets } = loadConfig({
  flags: {
    ...{ kind: 'cloud', port: '0', dataDir, workers: '0' },
    ...(adapter === 'declarative' ? { providers: providersFile } : {}),
    ...texts,
  },
  env: {},
  cwd: dataDir,
})
const priced = { price: { parts: [{ unit: 'image', usd: '0.04', times: [{ input: 'n', fallback: 1 }] }] } }
const schema = {
  type: 'object',
  required: ['prompt'],
  properties: { prompt: { type: 'string' }, n: { type: 'integer' } },
}
const models = ['direct', 'poll'].map((returns) => {
  const { model, problems } = readModel({ id: `bench/${returns}`, returns, input: { schema }, ...priced })
  if (model === null) throw new Error(problems.join())
  return model
})
const provider = createBenchProvider(providerUrl)
const app = await startApp(config, secrets, {
  log: silentLog,
  version: 'bench',
  overrides: adapter === 'plain' ? { models: { providers: [provider], models } } : {},
})

reportToParent(app.url, {
  async handle(command, argument) {
    if (command === 'key') return account.key
    while (provider.accepted() < (argument as number)) await new Promise((resolve) => setTimeout(resolve, 5))
    return true
  },
  async close() {
    await app[Symbol.asyncDispose]()
    await provider[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  },
})
