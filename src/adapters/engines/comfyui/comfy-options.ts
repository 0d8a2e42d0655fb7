/** How a ComfyUI server is reached or started, and for whom: the options of its engine. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { EngineRun } from '../../../domain/engine/engine-port.ts'
import type { ComfyBounds } from './comfy-bounds.ts'
import type { LaunchOptions } from './launch/supervisor.ts'

export type ComfyServer =
  | {
      readonly kind: 'remote'
      /** May carry a path, and a name and password for a proxy. */
      readonly url: URL
      /** Sent with every call, for example a proxy's token. */
      readonly headers?: Readonly<Record<string, string>>
    }
  | ({ readonly kind: 'supervised' } & LaunchOptions)

export interface ComfyEngineOptions {
  readonly server: ComfyServer
  /** Stays the same when we restart; absent: the address. */
  readonly id?: string
  /**
   * Names this service towards servers that it shares with others. What an earlier process left on a server under this name is
   * ended there; without a name, nothing is.
   */
  readonly ownerId?: string
  /** Names the present process of this service: prompts under this name are not left over, whichever of its engines posted them. */
  readonly instanceId?: string
  /** Other processes of this service, whose prompts are not left over while they live; left out: there can be none. */
  readonly siblings?: Siblings
  /** How many runs it is given at a time; ComfyUI itself runs one and keeps the others waiting. */
  readonly concurrency?: number
  readonly bounds?: Partial<ComfyBounds>
  /** The credentials that a run's partner nodes get; left out: those of the job. */
  readonly equip?: Equip
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly log: Log
  readonly clock: Clock
}

/** `extra_data` of a run, with a credential for the paths of this service that partner nodes call. */
export type Equip = (run: EngineRun) => Promise<EngineRun['extraData']>

interface Siblings {
  /** The names of the processes that live, this one included. */
  findLive(): Promise<ReadonlySet<string>>
  /** Whether this process may end what dead ones left: it is the one that gives this server work. */
  mayEndOrphans(): boolean
}
