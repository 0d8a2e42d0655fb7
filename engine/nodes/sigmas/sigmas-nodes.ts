/** Noise levels of samplers, as far as they need no model. */
import type { EngineNode } from '../../node/define-node.ts'
import {
  extendIntermediateSigmas,
  flipSigmas,
  manualSigmas,
  setFirstSigma,
  splitSigmas,
  splitSigmasDenoise,
} from './edit-sigmas.ts'
import {
  exponentialScheduler,
  karrasScheduler,
  laplaceScheduler,
  polyexponentialScheduler,
  vpScheduler,
} from './scheduler-nodes.ts'

export const sigmasNodes: readonly EngineNode[] = [
  karrasScheduler,
  exponentialScheduler,
  polyexponentialScheduler,
  vpScheduler,
  laplaceScheduler,
  splitSigmas,
  splitSigmasDenoise,
  flipSigmas,
  setFirstSigma,
  extendIntermediateSigmas,
  manualSigmas,
]
