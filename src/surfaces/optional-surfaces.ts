/**
 * Surfaces that may be left out of a build: each is a folder beside this file whose `index.ts` exports `createSurface`. They
 * are found by name at start-up and never imported by anything else, so that deleting such a folder leaves a service that
 * compiles and runs without it.
 */
import { existsSync } from 'node:fs'
import type { Surface } from './kit/surface.ts'
import type { CreateSurface, ServeAgent, SurfaceParts } from './kit/surface-parts.ts'

const FOLDERS = [
  'legacy-v1',
  'console',
  'partner-nodes',
  'mcp',
  'images-v1',
  'chat-v1',
  'replicate-v1',
  'share',
  'deploy-v1',
  'builder-v1',
] as const
type OptionalSurface = (typeof FOLDERS)[number]

export async function openOptionalSurfaces(parts: SurfaceParts): Promise<Surface[]> {
  const surfaces: Surface[] = []
  for (const folder of FOLDERS) {
    const surface = await openOptionalSurface(folder, parts)
    if (surface !== null) surfaces.push(surface)
  }
  return surfaces
}

/** null: it was left out. */
export async function openOptionalSurface(folder: OptionalSurface, parts: SurfaceParts): Promise<Surface | null> {
  const found = (await importSurface(folder)) as { readonly createSurface: CreateSurface } | null
  return found?.createSurface(parts) ?? null
}

/** The tools for agents without a listener; null: they were left out. */
export async function openAgentTools(): Promise<ServeAgent | null> {
  const found = (await importSurface('mcp')) as { readonly serveAgent: ServeAgent } | null
  return found?.serveAgent ?? null
}

function importSurface(folder: OptionalSurface): Promise<unknown> {
  const entry = new URL(`./${folder}/index.ts`, import.meta.url)
  return existsSync(entry) ? import(entry.href) : Promise.resolve(null)
}
