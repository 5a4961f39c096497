#Requires -Version 5.1
#Requires -RunAsAdministrator
<#
.SYNOPSIS
    @QUESTION@
.DESCRIPTION
    Made by laglab; README.md says what it records, and what that costs. Run it elevated.
.EXAMPLE
    .\record.ps1 -Seconds 60 -Note "after resume"
.EXAMPLE
    .\record.ps1 Circular; .\record.ps1 Save
#>
[CmdletBinding()]
param(
    # What to do: record for so many seconds, or one step of a recording.
    [Parameter(Position = 0)]
    [ValidateSet('Run', 'Start', 'Circular', 'Mark', 'Save', 'Stop', 'Cancel', 'Boot', 'BootStop', 'BootCancel')]
    [string] $Action = 'Run',
    [ValidateRange(1, 86400)]
    [int] $Seconds = 20,
    # A word on the recording, or on the moment that is marked.
    [string] $Note = '@NAME@',
    # Where temporary files go: a quick disk that is not what is investigated; by itself temp, beside this.
    [string] $Temporary
)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# Not as the parameter's own default: Windows PowerShell does not yet know there where the script is.
if (-not $Temporary) { $Temporary = Join-Path $PSScriptRoot 'temp' }
$Temporary = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Temporary)

$recordingProfile = Join-Path $PSScriptRoot '@PROFILE@'
$node = @NODE@
$withPackets = @PACKETS@
# These are there while what this kit started runs: what is somebody else's is left alone.
$running = Join-Path $PSScriptRoot 'temp\wpr-runs'
$packetsRun = Join-Path $PSScriptRoot 'temp\packets-run'
$settings = [ordered]@{
@SETTINGS@
}

# An argument as programs take it: in quotes, before whose end a backslash counts twice.
function Get-Quoted {
    param([string] $Argument)
    '"' + ($Argument.Replace('"', "'") -replace '(\\+)$', '$1$1') + '"'
}

# Runs a line of the command interpreter, waits for it, and gives its exit code. What it prints is
# shown. Not with &, since Windows PowerShell changes quotes within arguments, and takes words on
# stderr for errors of its own where they are redirected.
function Invoke-Line {
    param([string] $Line)
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = Join-Path $env:SystemRoot 'System32\cmd.exe'
    $start.Arguments = '/d /v:off /s /c "' + $Line + '"'
    $start.WorkingDirectory = $PSScriptRoot
    $start.UseShellExecute = $false
    $process = [System.Diagnostics.Process]::Start($start)
    $process.WaitForExit()
    $process.ExitCode
}

# Runs WPR with high priority, so that it gets a CPU while the machine is flooded; and on a NUMA node
# that is not what is investigated, where there are several.
function Invoke-Wpr {
    param([string[]] $Arguments)
    $line = 'start "" /b /wait /high'
    if ($null -ne $node) { $line += " /node $node" }
    $line += ' wpr.exe'
    foreach ($argument in $Arguments) {
        if ($argument -cmatch '^-[a-z]+$') { $line += ' ' + $argument }
        else { $line += ' ' + (Get-Quoted $argument) }
    }
    $code = Invoke-Line $line
    if ($code -ne 0) {
        throw "wpr.exe failed with code $code; its own words are above. Does another recording run? 'logman query -ets' lists them; '.\record.ps1 Cancel' ends one of WPR."
    }
}

function Start-Packets {
    if (-not $withPackets) { return }
    Stop-Packets
    $file = Get-Quoted ('tracefile=' + (Join-Path $Temporary 'packets.etl'))
    $code = Invoke-Line "netsh.exe trace start capture=yes report=disabled maxsize=1024 overwrite=yes $file"
    if ($code -eq 0) { Set-Content -LiteralPath $packetsRun -Value (Get-Date -Format o) }
    else { Write-Warning 'netsh does not capture packets: none will be in the recording.' }
}

function Stop-Packets {
    if (-not (Test-Path -LiteralPath $packetsRun)) { return }
    [void] (Invoke-Line 'netsh.exe trace stop >nul')
    Remove-Item -LiteralPath $packetsRun
}

# Begins to record; if that fails, nothing is left running.
function Start-Recording {
    param([string[]] $Arguments = @())
    foreach ($folder in $Temporary, (Split-Path -Parent $running)) {
        if (-not (Test-Path -LiteralPath $folder)) { New-Item -ItemType Directory -Path $folder | Out-Null }
    }
    Start-Packets
    try { Invoke-Wpr -Arguments (@('-start', $recordingProfile) + $Arguments) }
    catch {
        Stop-Packets
        throw
    }
    Set-Content -LiteralPath $running -Value (Get-Date -Format o)
}

function Stop-AndSave {
    param([switch] $KeepPackets)
    $trace = Get-NextTrace
    Invoke-Wpr -Arguments '-stop', $trace, $Note
    Remove-Item -LiteralPath $running -ErrorAction SilentlyContinue
    if ($withPackets -and -not $KeepPackets) {
        Stop-Packets
        $packets = Join-Path $Temporary 'packets.etl'
        if (Test-Path -LiteralPath $packets) {
            Move-Item -Force -LiteralPath $packets -Destination ($trace -replace '\.etl$', '-packets.etl')
        }
    }
    Save-Surroundings -Trace $trace
}

function Stop-WithoutSaving {
    param([string] $Quietly = '')
    [void] (Invoke-Line "wpr.exe -cancel $Quietly")
    Remove-Item -LiteralPath $running -ErrorAction SilentlyContinue
    Stop-Packets
}

function Get-NextTrace {
    $number = 1
    while (Test-Path -LiteralPath (Join-Path $PSScriptRoot "@NAME@-$number.etl")) { $number++ }
    Join-Path $PSScriptRoot "@NAME@-$number.etl"
}

# What laglab explain cannot see in a trace is kept beside it.
function Save-Surroundings {
    param([string] $Trace)
    foreach ($label in $settings.Keys) {
        [void] (Invoke-Line "reg.exe export $(Get-Quoted $settings[$label]) $(Get-Quoted "$Trace.$label.reg") /y >nul 2>&1")
    }
    $cpus = [Environment]::ProcessorCount
    $notes = @($Note, "$(Get-Date -Format o), $cpus processors, $([Environment]::OSVersion.VersionString)")
    Set-Content -LiteralPath "$Trace.notes.txt" -Value $notes -Encoding UTF8
    Write-Host "Saved $Trace. Then: laglab explain `"$Trace`""
}

$toFile = '-filemode', '-recordtempto', $Temporary
switch ($Action) {
    'Run' {
        # What an earlier run of this kit left running would be in the way.
        if (Test-Path -LiteralPath $running) { Stop-WithoutSaving -Quietly '>nul 2>&1' }
        Start-Recording -Arguments $toFile
        # Ctrl-C ends the waiting, not the recorder: what there is is saved then, too.
        try {
            for ($second = 0; $second -lt $Seconds; $second++) {
                Write-Progress -Activity 'Recording: make it lag now' -Status "$($Seconds - $second) s" -PercentComplete (100 * $second / $Seconds)
                Start-Sleep -Seconds 1
            }
            Write-Progress -Activity 'Recording: make it lag now' -Completed
        }
        finally { Stop-AndSave }
    }
    'Start' {
        Start-Recording -Arguments $toFile
        Write-Host 'It records until .\record.ps1 Stop. Till then it fills the disk, by some @RATE@ a second when busy.'
    }
    'Circular' {
        Start-Recording
        Write-Host 'It keeps what just happened, in memory. When it lagged: .\record.ps1 Save. To end it: .\record.ps1 Cancel'
    }
    'Mark' { Invoke-Wpr -Arguments '-marker', $Note }
    'Save' {
        # WPR saves only by stopping: it starts again at once.
        Stop-AndSave -KeepPackets
        Invoke-Wpr -Arguments '-start', $recordingProfile
        Set-Content -LiteralPath $running -Value (Get-Date -Format o)
    }
    'Stop' { Stop-AndSave }
    'Cancel' { Stop-WithoutSaving }
    'Boot' {
        if (-not (Test-Path -LiteralPath $Temporary)) { New-Item -ItemType Directory -Path $Temporary | Out-Null }
        Invoke-Wpr -Arguments (@('-boottrace', '-addboot', $recordingProfile) + $toFile)
        Write-Host 'Restart, log on, and when it is calm again: .\record.ps1 BootStop'
        Write-Host 'Till then, or .\record.ps1 BootCancel, every start of Windows is recorded, and fills the disk.'
    }
    'BootStop' {
        $trace = Get-NextTrace
        Invoke-Wpr -Arguments '-boottrace', '-stopboot', $trace
        Save-Surroundings -Trace $trace
    }
    'BootCancel' { Invoke-Wpr -Arguments '-boottrace', '-cancelboot' }
}
