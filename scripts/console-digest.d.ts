export function digestConsole(project: string): string | null
export function isConsoleBuilt(project: string, digest: string): boolean
