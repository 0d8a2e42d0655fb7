/** UI outputs of several calls of one node become one: each key's lists joined, the keys being those of the first. */
import type { MadeReport } from '../../node/node-context.ts'

export function mergeReports(reports: readonly MadeReport[]): MadeReport | null {
  if (reports.length === 0) return null
  if (reports.length === 1) return reports[0]
  return Object.fromEntries(Object.keys(reports[0]).map((key) => [key, reports.flatMap((report) => report[key] ?? [])]))
}
