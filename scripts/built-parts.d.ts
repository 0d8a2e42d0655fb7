export function digestConsole(project: string): string | null
export function isConsoleBuilt(project: string, digest: string): boolean
export function digestClient(project: string): string | null
export function isClientBuilt(project: string, digest: string): boolean
export function digestProgram(project: string): string | null
export function digestEngine(project: string): string
export function builtProgram(project: string, digest: string): string
export function findProgram(project: string): string
export function packedProgram(project: string): string
