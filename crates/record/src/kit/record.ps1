#Requires -Version 5.1
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
    [ValidateSet('Run', 'Start', 'Circular', 'Mark', 'Save', 'Stop', 'Cancel', 'Boot', 'BootStop')]
    [string] $Action = 'Run',
    [ValidateRange(1, 86400)]
    [int] $Seconds = 20,
    # A word on the recording, or on the moment that is marked.
    [string] $Note = '@NAME@',
    # Where temporary files go: a quick disk that is not what is investigated.
    [string] $Temporary = (Join-Path $PSScriptRoot 'temp')
)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$recordingProfile = (Join-Path $PSScriptRoot '@PROFILE@') + '!@NAME@'
$node = @NODE@
$withPackets = @PACKETS@
$settings = [ordered]@{
@SETTINGS@
}

# Runs WPR and waits for it; what it says is shown.
function Invoke-Wpr {
    param([string[]] $Arguments)
    & wpr.exe @Arguments
    if ($LASTEXITCODE -ne 0) {
        throw "wpr.exe failed with code $LASTEXITCODE. Is this prompt elevated, and does no other recording run? '.\record.ps1 Cancel' ends one of its own."
    }
}

# The same with high priority, so that it gets a CPU while the machine is flooded; and on a NUMA node
# that is not what is investigated, where there are several.
function Invoke-UrgentWpr {
    param([string[]] $Arguments)
    $quoted = $Arguments | ForEach-Object { '"' + $_.Replace('"', "'") + '"' }
    $where = '/high'
    if ($null -ne $node) { $where += " /node $node" }
    & cmd.exe /d /v:off /s /c ('"start "" /b /wait ' + $where + ' wpr.exe ' + ($quoted -join ' ') + '"')
    if ($LASTEXITCODE -ne 0) {
        throw "wpr.exe failed with code $LASTEXITCODE. Is this prompt elevated, and does no other recording run? '.\record.ps1 Cancel' ends one of its own."
    }
}

function Get-NextTrace {
    $number = 1
    while (Test-Path -LiteralPath (Join-Path $PSScriptRoot "@NAME@-$number.etl")) { $number++ }
    Join-Path $PSScriptRoot "@NAME@-$number.etl"
}

function Start-ToFile {
    New-Item -ItemType Directory -Force -Path $Temporary | Out-Null
    if ($withPackets) {
        & netsh.exe trace start capture=yes report=disabled maxsize=1024 overwrite=yes "tracefile=$(Join-Path $Temporary 'packets.etl')"
    }
    Invoke-UrgentWpr -Arguments '-start', $recordingProfile, '-filemode', '-recordtempto', $Temporary
}

# What laglab explain cannot see in a trace is kept beside it.
function Save-Surroundings {
    param([string] $Trace)
    foreach ($label in $settings.Keys) {
        & reg.exe export $settings[$label] "$Trace.$label.reg" /y 2>&1 | Out-Null
    }
    $cpus = [Environment]::ProcessorCount
    $notes = @($Note, "$(Get-Date -Format o), $cpus processors, $([Environment]::OSVersion.VersionString)")
    Set-Content -LiteralPath "$Trace.notes.txt" -Value $notes -Encoding UTF8
    Write-Host "Saved $Trace. Then: laglab explain `"$Trace`""
}

function Stop-AndSave {
    $trace = Get-NextTrace
    Invoke-UrgentWpr -Arguments '-stop', $trace, $Note
    if ($withPackets) {
        & netsh.exe trace stop | Out-Null
        $packets = Join-Path $Temporary 'packets.etl'
        if (Test-Path -LiteralPath $packets) {
            Move-Item -Force -LiteralPath $packets -Destination ($trace -replace '\.etl$', '-packets.etl')
        }
    }
    Save-Surroundings -Trace $trace
}

switch ($Action) {
    'Run' {
        # An earlier recording that nobody stopped would be in the way; most often there is none.
        & wpr.exe -cancel 2>&1 | Out-Null
        Start-ToFile
        for ($second = 0; $second -lt $Seconds; $second++) {
            Write-Progress -Activity 'Recording: make it lag now' -Status "$($Seconds - $second) s" -PercentComplete (100 * $second / $Seconds)
            Start-Sleep -Seconds 1
        }
        Write-Progress -Activity 'Recording: make it lag now' -Completed
        Stop-AndSave
    }
    'Start' { Start-ToFile }
    'Circular' {
        Invoke-UrgentWpr -Arguments '-start', $recordingProfile
        Write-Host 'It keeps what just happened, in memory. When it lagged: .\record.ps1 Save'
    }
    'Mark' { Invoke-Wpr -Arguments '-marker', $Note }
    'Save' {
        # WPR saves only by stopping: it starts again at once.
        $trace = Get-NextTrace
        Invoke-UrgentWpr -Arguments '-stop', $trace, $Note
        Invoke-UrgentWpr -Arguments '-start', $recordingProfile
        Save-Surroundings -Trace $trace
    }
    'Stop' { Stop-AndSave }
    'Cancel' {
        & wpr.exe -cancel
        if ($withPackets) { & netsh.exe trace stop | Out-Null }
    }
    'Boot' {
        New-Item -ItemType Directory -Force -Path $Temporary | Out-Null
        Invoke-Wpr -Arguments '-boottrace', '-addboot', $recordingProfile, '-filemode', '-recordtempto', $Temporary
        Write-Host 'Restart, log on, and when it is calm again: .\record.ps1 BootStop'
    }
    'BootStop' {
        $trace = Get-NextTrace
        Invoke-Wpr -Arguments '-boottrace', '-stopboot', $trace
        Save-Surroundings -Trace $trace
    }
}
