/** Who may have environments built, and how much of them. */
import type { SettingValues } from '../settings/settings.ts'

export type BuildsConfig = ReturnType<typeof toBuildsConfig>

const GIB = 1024 ** 3

// Beyond what a person keeps track of, and little enough for one disk.
const BOUNDS = {
  builds: 500,
  releases: 200,
  unfinished: 20,
  blobs: { maxFileBytes: 100 * GIB, maxFiles: 2000, maxBytes: 1024 * GIB },
} as const

export function toBuildsConfig({ builds }: Pick<SettingValues, 'builds'>) {
  return { allowed: builds, bounds: BOUNDS }
}
