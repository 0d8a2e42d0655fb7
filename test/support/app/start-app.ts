/** The whole service in this process, on a free port and in a temporary folder that is removed with it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Log, silentLog } from '../../../lib/log.ts'
import { type App, type AppOverrides, startApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { ENV } from '../../../src/config/env.ts'
import { type ConfigPatch, patchConfig } from './patch-config.ts'
import { dropTestStore, toStoreSettings } from './test-store.ts'

export interface TestApp extends AsyncDisposable {
  readonly url: string
  readonly app: App
  readonly dataDir: string
  /** Stops the service and starts it again over the same folder. */
  restart(): Promise<TestApp>
}

export interface TestAppOptions {
  /** Settings as they would stand on the command line, without the dashes. */
  readonly settings?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  /** Values that no setting has. */
  readonly patch?: ConfigPatch
  readonly overrides?: AppOverrides
  readonly log?: Log
  readonly dataDir?: string
}

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'atelier-test-')))
  const { database, ...flags } = { ...(await toStoreSettings(dataDir)), ...options.settings }
  const { config, secrets } = loadConfig({
    flags: { port: '0', dataDir, ...flags },
    // Its address holds a password, which no command line may hold.
    env: { ...options.env, ...(database !== undefined && { [ENV.database]: database }) },
    cwd: dataDir,
  })
  const app = await startApp(patchConfig(config, options.patch), secrets, {
    log: options.log ?? silentLog,
    version: 'test',
    overrides: options.overrides,
  })
  return {
    url: app.url,
    app,
    dataDir,
    async restart() {
      await app[Symbol.asyncDispose]()
      return startTestApp({ ...options, dataDir })
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      await rm(dataDir, { recursive: true, force: true })
      await dropTestStore(dataDir)
    },
  }
}
