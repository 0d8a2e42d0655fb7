/** Uploads and stored files: how large, how long, and where they may come from and go. */
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface AssetsConfig {
  readonly maxUploadBytes: number
  /** null: uploads never expire by themselves. */
  readonly retentionMs: number | null
  /** How long bytes stay after their last record is gone. */
  readonly blobGraceMs: number
  /** Absolute; null: uploads cannot be stored as models. */
  readonly modelsDirectory: string | null
  /** Absolute. Files below these folders can be imported as assets. */
  readonly importDirectories: readonly string[]
  /** How long a signed address works. */
  readonly urlLifetimeMs: number
}

// A client that reads a job once a day can still follow its links; a leaked link ends within the day.
const URL_LIFETIME_MS = 86_400_000

export function toAssetsConfig(values: SettingValues, toAbsolute: ToAbsolute): AssetsConfig {
  return {
    maxUploadBytes: values.maxUpload,
    retentionMs: values.assetRetention,
    blobGraceMs: values.blobGrace,
    modelsDirectory: values.modelsDir === null ? null : toAbsolute('modelsDir', values.modelsDir),
    importDirectories: values.importDirs.map((folder) => toAbsolute('importDirs', folder)),
    urlLifetimeMs: URL_LIFETIME_MS,
  }
}
