/**
 * What a process of each role opens. Store, blobs, bus, router and the directory of engines are open in all of them: a process that
 * takes requests must know what engines elsewhere can run, and one that runs jobs must be able to call the models of their nodes.
 */
import type { Role } from '../config/blocks/role-config.ts'

interface RoleParts {
  /** Engines, and the workers that claim jobs for them. */
  readonly engines: boolean
  /** The APIs on the listener. Without them it answers `/healthz`, `/readyz` and `/metrics` alone. */
  readonly surfaces: boolean
}

export const PARTS_OF: Readonly<Record<Role, RoleParts>> = {
  all: { engines: true, surfaces: true },
  api: { engines: false, surfaces: true },
  worker: { engines: true, surfaces: false },
}
