#Requires -Version 5.1
#Requires -RunAsAdministrator
<#
.SYNOPSIS
    @QUESTION@
.DESCRIPTION
    Made by laglab; README.md describes what it records and what that costs. Run it elevated.
.EXAMPLE
    .\record.ps1 -Seconds 60 -Note "after resume"
.EXAMPLE
    .\record.ps1 Circular; .\record.ps1 Save
#>
[CmdletBinding()]
param(
    # Action: Run records for a number of seconds; the others are single steps of a recording.
    [Parameter(Position = 0)]
    [ValidateSet('Run', 'Start', 'Circular', 'Mark', 'Save', 'Stop', 'Cancel', 'Boot', 'BootStop', 'BootCancel')]
    [string] $Action = 'Run',
    [ValidateRange(1, 86400)]
    [int] $Seconds = 20,
    # Note for the recording or for the mark.
    [string] $Note = '@NAME@',
    # Folder for temporary files, on a fast disk that is not under investigation. Default: temp, next to this script.
    [string] $Temporary
)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# Not the parameter's default, because Windows PowerShell does not know $PSScriptRoot there.
if (-not $Temporary) { $Temporary = Join-Path $PSScriptRoot 'temp' }
$Temporary = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Temporary)

$recordingProfile = Join-Path $PSScriptRoot '@PROFILE@'
$node = @NODE@
$withPackets = @PACKETS@
# Marker files that exist while a recording of this kit runs. Other recordings are left alone.
$running = Join-Path $PSScriptRoot 'temp\wpr-runs'
$packetsRun = Join-Path $PSScriptRoot 'temp\packets-run'
$settings = [ordered]@{
@SETTINGS@
}

# Quotes an argument for cmd.exe. Backslashes before a closing quote must be doubled. Percent signs are
# outside the quotes, after a caret, because cmd.exe expands variables inside quotes.
function Get-Quoted {
    param([string] $Argument)
    $parts = $Argument.Replace('"', "'") -replace '[\x00-\x1f]', ' ' -split '%'
    ($parts | ForEach-Object { '"' + ($_ -replace '(\\+)$', '$1$1') + '"' }) -join '^%'
}

# Runs a command line, shows its output, waits, and returns its exit code. The operator & does not
# work here: Windows PowerShell changes quotes within arguments and turns redirected output on stderr
# into errors.
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

# Runs WPR with high priority, so that it gets a CPU on an overloaded machine. If there are several
# NUMA nodes, it runs on one that is not under investigation.
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
        throw "wpr.exe failed with code $code; its message is above. Does another recording run? 'logman query -ets' lists running sessions; '.\record.ps1 Cancel' ends a recording of WPR."
    }
}

function Start-Packets {
    if (-not $withPackets) { return }
    Stop-Packets
    $file = Get-Quoted ('tracefile=' + (Join-Path $Temporary 'packets.etl'))
    $code = Invoke-Line "netsh.exe trace start capture=yes report=disabled maxsize=1024 overwrite=yes $file"
    if ($code -eq 0) { Set-Content -LiteralPath $packetsRun -Value (Get-Date -Format o) }
    else { Write-Warning 'netsh cannot capture packets; the recording will have none.' }
}

function Stop-Packets {
    if (-not (Test-Path -LiteralPath $packetsRun)) { return }
    [void] (Invoke-Line 'netsh.exe trace stop >nul')
    Remove-Item -LiteralPath $packetsRun
}

# Starts a recording. If the start fails, nothing is left running.
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
    Save-Settings -Trace $trace
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

# Saves settings that a trace does not contain next to it.
function Save-Settings {
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
        # A recording that an earlier run of this kit left running would make the start fail.
        if (Test-Path -LiteralPath $running) { Stop-WithoutSaving -Quietly '>nul 2>&1' }
        Start-Recording -Arguments $toFile
        # Ctrl-C ends the waiting, not the recorder. The recording is saved then too.
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
        Write-Host 'Recording until .\record.ps1 Stop. It fills the disk by about @RATE@ per second on a busy machine.'
    }
    'Circular' {
        Start-Recording
        Write-Host 'Recording in memory. After a lag, save the latest events: .\record.ps1 Save. To end the recording: .\record.ps1 Cancel'
    }
    'Mark' { Invoke-Wpr -Arguments '-marker', $Note }
    'Save' {
        # WPR can save only by stopping; it is restarted afterwards.
        Stop-AndSave -KeepPackets
        Invoke-Wpr -Arguments '-start', $recordingProfile
        Set-Content -LiteralPath $running -Value (Get-Date -Format o)
    }
    'Stop' { Stop-AndSave }
    'Cancel' { Stop-WithoutSaving }
    'Boot' {
        if (-not (Test-Path -LiteralPath $Temporary)) { New-Item -ItemType Directory -Path $Temporary | Out-Null }
        Invoke-Wpr -Arguments (@('-boottrace', '-addboot', $recordingProfile) + $toFile)
        Write-Host 'Restart, log on, and when the machine is idle: .\record.ps1 BootStop'
        Write-Host 'Until then, or until .\record.ps1 BootCancel, every boot is recorded to the disk.'
    }
    'BootStop' {
        $trace = Get-NextTrace
        Invoke-Wpr -Arguments '-boottrace', '-stopboot', $trace
        Save-Settings -Trace $trace
    }
    'BootCancel' { Invoke-Wpr -Arguments '-boottrace', '-cancelboot' }
}
