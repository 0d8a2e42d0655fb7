/**
 * One process of the service, with the links that it has to everything else. Each of its lives has the same address and the same log
 * file. As under any supervisor a start that fails, because the database is away, is tried again; a process that ends by itself
 * is noted as a death.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'
import { toServerUrl } from '../../support/postgres/postgres-server.ts'
import type { BusLink, ChaosBus } from './bus.ts'
import type { ProcessFaults } from './preload.ts'
import type { ChaosStorage } from './storage.ts'

const START_AGAIN_MS = 500
const START_GIVE_UP_MS = 300_000
const PRELOAD = pathToFileURL(fileURLToPath(new URL('./preload.ts', import.meta.url))).href

export interface NodeOptions {
  readonly name: string
  /** Where a worker that reaches neither the database nor the storage joins; left out: the node has both. */
  readonly joins?: JoinPlace
  readonly folder: string
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly databasePort: number
  readonly databaseName: string
  readonly storage: Pick<ChaosStorage, 'settingsFor' | 'port'>
  readonly bus: Pick<ChaosBus, 'attach'>
}

interface Links {
  readonly front: FaultProxy
  readonly database: FaultProxy
  readonly storage: FaultProxy
  readonly bus: BusLink
}

export interface JoinPlace {
  /** The addresses of the API nodes. */
  readonly urls: readonly string[]
  readonly key: string
}

export class ServiceNode implements AsyncDisposable {
  readonly name: string
  readonly logFile: string
  /** Where clients reach it. */
  readonly front: FaultProxy
  /** Its way to Postgres. */
  readonly database: FaultProxy
  /** Its way to the bucket; unused where bytes lie in a folder. */
  readonly storage: FaultProxy
  /** Its way to the others; unused by a worker that joins. */
  readonly bus: FaultProxy
  /** What it said when it ended without being asked to. */
  readonly deaths: string[] = []
  readonly #options: NodeOptions
  readonly #busSettings: Omit<BusLink, 'proxy'>
  readonly #faultsFile: string
  #faults: ProcessFaults = { clockOffsetMs: 0, isDiskFull: false }
  #running: SpawnedServer | null = null

  private constructor(options: NodeOptions, links: Links) {
    this.name = options.name
    this.#options = options
    this.#busSettings = links.bus
    this.bus = links.bus.proxy
    this.front = links.front
    this.database = links.database
    this.storage = links.storage
    this.logFile = join(options.folder, `${options.name}.log`)
    this.#faultsFile = join(options.folder, `${options.name}.faults`)
    this.be({})
  }

  static async open(options: NodeOptions): Promise<ServiceNode> {
    return new ServiceNode(options, {
      front: await openFaultProxy(),
      database: await openFaultProxy({ target: options.databasePort }),
      storage: await openFaultProxy({ target: options.storage.port }),
      bus: await options.bus.attach(),
    })
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    const giveUpAt = performance.now() + START_GIVE_UP_MS
    for (;;) {
      try {
        this.#note('starts')
        this.#running = await this.#spawn()
        break
      } catch (error) {
        this.#note(`did not start: ${String(error).slice(0, 2000)}`)
        if (performance.now() > giveUpAt) throw error
        await pause(START_AGAIN_MS)
      }
    }
    const running = this.#running
    this.front.aim(Number(new URL(running.url).port))
    running.exited.then((code) => {
      if (this.#running !== running) return
      this.deaths.push(`${this.name} ended by itself with ${code}: ${running.output().slice(-3000)}`)
      this.#running = null
      this.front.aim(null)
      this.start().catch((error) => this.deaths.push(`${this.name} could not be started again: ${error}`))
    })
  }

  #spawn(): Promise<SpawnedServer> {
    return this.#options.joins === undefined ? this.#spawnWithDatabase() : this.#spawnJoined(this.#options.joins)
  }

  #spawnJoined({ urls, key }: JoinPlace): Promise<SpawnedServer> {
    const { folder, flags, env } = this.#options
    return spawnServer(
      ['--join', urls.join(','), '--data-dir', join(folder, `data-${this.name}`), ...flags],
      { ...env, ATELIER_WORKER_TOKEN: key, ...this.#faultEnv() },
      { command: 'work', onOutput: (text) => appendFileSync(this.logFile, text) },
    )
  }

  #faultEnv(): Record<string, string> {
    return { NODE_OPTIONS: `--import=${PRELOAD}`, CHAOS_FAULTS_FILE: this.#faultsFile }
  }

  #spawnWithDatabase(): Promise<SpawnedServer> {
    const { databaseName, flags, env, storage } = this.#options
    const bytes = storage.settingsFor(this.name, this.storage)
    return spawnServer(
      [...this.#busSettings.flags, ...bytes.flags, ...flags],
      {
        ...{ ...env, ...this.#busSettings.env, ...bytes.env, ...this.#faultEnv() },
        ATELIER_DATABASE: toServerUrl(this.database.port, databaseName),
      },
      { onOutput: (text) => appendFileSync(this.logFile, text) },
    )
  }

  async kill(): Promise<void> {
    await this.#end('is killed', (running) => running.killNow())
  }

  async terminate(): Promise<void> {
    await this.#end('is asked to end', (running) => running.terminate())
  }

  /** Stopped as it stands, its connections open, until `thaw`. */
  freeze(): void {
    this.#signal('SIGSTOP')
  }

  thaw(): void {
    this.#signal('SIGCONT')
  }

  be(faults: Partial<ProcessFaults>): void {
    this.#faults = { ...this.#faults, ...faults }
    writeFileSync(this.#faultsFile, JSON.stringify(this.#faults))
  }

  #signal(name: NodeJS.Signals): void {
    this.#note(name)
    if (this.#running !== null) process.kill(this.#running.pid, name)
  }

  async #end(how: string, act: (running: SpawnedServer) => Promise<unknown>): Promise<void> {
    const running = this.#running
    this.#running = null
    this.front.aim(null)
    this.#note(how)
    if (running !== null) await act(running)
  }

  #note(what: string): void {
    appendFileSync(this.logFile, `${JSON.stringify({ time: Date.now(), msg: `*** ${this.name} ${what}` })}\n`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await this.front[Symbol.asyncDispose]()
    await this.database[Symbol.asyncDispose]()
    await this.storage[Symbol.asyncDispose]()
    await this.bus[Symbol.asyncDispose]()
  }
}
