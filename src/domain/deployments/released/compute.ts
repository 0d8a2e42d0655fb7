/** Machines as regions and classes of compute, from what engines say of their devices and what releases can be built for. */
import type { EngineDevice } from '../../engine/fleet/fleet-engine.ts'
import type { ComputeClass, ComputeRegion } from './releases.ts'

/** A kind of processor that a release can be built for. */
type ComputeKind = 'nvidia' | 'amd' | 'apple' | 'cpu'

interface ComputeFacts {
  readonly devices: readonly EngineDevice[]
  readonly kinds: readonly ComputeKind[]
  readonly memoryBytes: number
  /** Engines that could still be started now. */
  readonly freeRoom: number
}

/** The one region of a service that names no others. */
const LOCAL_REGION = 'local'
const GIB = 1024 ** 3
const LABELS: Readonly<Record<ComputeKind, string>> = {
  nvidia: 'NVIDIA GPU',
  amd: 'AMD GPU',
  apple: 'Apple GPU',
  cpu: 'CPU',
}

export function toRegions({ devices, kinds, memoryBytes, freeRoom }: ComputeFacts): readonly ComputeRegion[] {
  const availability = freeRoom >= 2 ? 'High' : freeRoom === 1 ? 'Medium' : 'Low'
  const gpus = new Map<string, ComputeClass>()
  for (const { name, vramTotalBytes } of devices) {
    const gpuClass = toGpuClass(name)
    if (gpuClass === 'cpu') continue
    gpus.set(gpuClass, {
      gpuClass,
      label: toLabel(name),
      vramGb: Math.round((vramTotalBytes ?? 0) / GIB),
      availability,
    })
  }
  // Always offered, also beside the cards that engines name: what was deployed before its card was seen keeps its class.
  for (const kind of kinds) {
    if (gpus.has(kind)) continue
    const vramGb = kind === 'cpu' ? Math.max(1, Math.round(memoryBytes / GIB)) : 0
    gpus.set(kind, { gpuClass: kind, label: LABELS[kind], vramGb, availability })
  }
  const label = 'This service'
  return [{ region: LOCAL_REGION, label, level: 'site', parent: null, gpus: [...gpus.values()] }]
}

/** `cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync` */
function toLabel(name: string): string {
  return name
    .replace(/^(?:cuda|xpu|mps|hip|privateuseone):\d+\s*/i, '')
    .replace(/\s+:\s.*$/, '')
    .trim()
}

/** `rtx-4090`, `h200`, `cpu` */
function toGpuClass(name: string): string {
  const words = toLabel(name)
    .toLowerCase()
    .replaceAll(/\b(?:nvidia|geforce|amd|radeon|tesla)\b/g, ' ')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return words === '' ? 'gpu' : words
}
