/** Uploads and stored files: how large, how long, and where they may come from and go. */
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type AssetsConfig = ReturnType<typeof toAssetsConfig>

export function toAssetsConfig(values: SettingValues, toAbsolute: ToAbsolute) {
  return {
    maxUploadBytes: values.maxUpload,
    /** null: uploads never expire by themselves. */
    retentionMs: values.assetRetention,
    /** How long bytes stay after their last record is gone. */
    blobGraceMs: values.blobGrace,
    /** Absolute; null: uploads cannot be stored as models. */
    modelsDirectory: values.modelsDir === null ? null : toAbsolute('modelsDir', values.modelsDir),
    /** Absolute. Files below these folders can be imported as assets. */
    importDirectories: values.importDirs.map((folder) => toAbsolute('importDirs', folder)),
    /** Of a signed address. A client that reads a job once a day can follow its links; a leaked link ends within the day. */
    urlLifetimeMs: 86_400_000,
  }
}
